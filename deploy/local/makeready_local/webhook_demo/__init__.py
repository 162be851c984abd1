"""`make demo`: a running system and a receiver, with a delivery followed step by step."""
