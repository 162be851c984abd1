"""The company: its settings, who may sign in, and what was done."""
