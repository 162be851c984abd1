"""The public API, and identity: companies, administrators, keys."""
