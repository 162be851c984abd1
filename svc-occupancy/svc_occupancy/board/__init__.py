"""The turn board: what staff say of units and turns."""
