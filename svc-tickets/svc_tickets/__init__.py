"""Tickets and the ticket policy of each company."""
