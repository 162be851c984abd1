"""`make demo`: a running system and a receiver, and the story of a delivery told as it happens."""
