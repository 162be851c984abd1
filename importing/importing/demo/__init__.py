"""The demo's records: small, believable data, with dates counted from a day. A sandbox may start with them, and the
company of `make run` does."""
