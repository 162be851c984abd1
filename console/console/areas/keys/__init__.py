"""API keys: minting, rotating, revoking, and what they are used for."""
