"""What the tests of all projects share."""
