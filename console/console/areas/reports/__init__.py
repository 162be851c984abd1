"""Pages of reports: figures of months, with charts."""
