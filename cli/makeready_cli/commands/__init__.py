"""The commands: a file for each noun, and in it what can be done with it."""
