"""The RPCs with which the console signs people in and out."""
