"""The tools that the tests of all projects share."""
