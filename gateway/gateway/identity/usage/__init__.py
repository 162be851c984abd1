"""For what the API keys are used: requests by the hour, refused requests, and the last use of each key."""
