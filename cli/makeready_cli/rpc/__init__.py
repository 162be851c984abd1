"""Commands made of contracts: one RPC each, its arguments the request's fields."""
