"""Companies, administrators, staff and API keys."""
