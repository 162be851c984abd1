"""The turn board, turns, make-ready tasks, and the residencies of units."""
