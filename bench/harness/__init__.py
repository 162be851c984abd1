"""Compares Makeready with monoliths that do the same work: server CPU a request. Run it with `make bench`."""
