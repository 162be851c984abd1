"""Companies, people and how they sign in, API keys."""
