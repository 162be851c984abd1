"""The SQL statements of tickets."""
