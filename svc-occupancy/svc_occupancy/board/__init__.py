"""The turn board: commands of staff on units and turns."""
