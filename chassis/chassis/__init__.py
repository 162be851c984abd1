"""The framework of every Makeready service. It knows no context."""
