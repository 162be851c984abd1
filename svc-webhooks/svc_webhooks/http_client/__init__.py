"""The only way out to receivers: checks addresses, keeps deadlines, takes times."""
