"""The rules of tickets. Pure."""
