"""Tickets as people look for them: by filters, words and order; with counts, details and a timeline."""
