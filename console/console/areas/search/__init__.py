"""The search for everything that a company has."""
