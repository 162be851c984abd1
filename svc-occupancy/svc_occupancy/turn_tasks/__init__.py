"""Make-ready tasks: the work that makes a turn's unit ready."""
