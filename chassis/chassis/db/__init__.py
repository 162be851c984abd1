"""A context's own PostgreSQL database."""
