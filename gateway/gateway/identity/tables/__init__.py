"""The tables of companies and their people, which statements of several packages join."""
