"""Figures of a period: kept by day and month beside the records, so that a report reads no records."""
