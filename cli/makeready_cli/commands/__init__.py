"""The commands: one file for each noun, with the commands about it."""
