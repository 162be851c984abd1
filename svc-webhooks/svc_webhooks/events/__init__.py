"""Public events as they are stored: their envelopes, and the days that hold them."""
