"""What a unit is: its status and its ready date, as its turns and people say."""
