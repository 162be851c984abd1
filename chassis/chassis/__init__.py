"""What every Makeready service stands on. It knows no context."""
