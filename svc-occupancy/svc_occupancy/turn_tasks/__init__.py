"""Make-ready tasks: what is to be done until a turn's unit is ready."""
