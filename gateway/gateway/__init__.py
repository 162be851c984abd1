"""The public API, and identity: companies, people and how they sign in, API keys."""
