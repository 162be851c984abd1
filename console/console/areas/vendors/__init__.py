"""The pages of vendors."""
