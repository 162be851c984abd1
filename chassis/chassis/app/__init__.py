"""One service process, wired and run."""
