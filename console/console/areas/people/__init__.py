"""The staff of the company."""
