"""API keys, stored as digests, and the answer of GET /whoami about one."""
