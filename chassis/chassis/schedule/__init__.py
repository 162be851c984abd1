"""Work that the clock starts."""
