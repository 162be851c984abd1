"""Templates of make-ready tasks: the tasks that a turn of one kind has, added in one act."""
