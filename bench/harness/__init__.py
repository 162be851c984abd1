"""Compares Makeready with a monolith that does the same work: server CPU a request. Run it with `make bench`."""
