"""Lists, counts and the search for people."""
