"""A unit's state: its status and its ready date, from its turns and from staff."""
