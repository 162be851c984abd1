"""Notices and move-ins: what feeds tell of residents, with leases and parties."""
