"""The view and the changes of administrators: health, secrets, deliveries and their attempts."""
