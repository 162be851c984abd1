"""Commands made from contracts: each is one RPC, with the request's fields as arguments."""
