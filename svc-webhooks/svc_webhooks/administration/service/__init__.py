"""The RPCs of administrators, and the operator's sweep."""
