"""Tickets: the lists, the page of one, and their parts of other pages."""
