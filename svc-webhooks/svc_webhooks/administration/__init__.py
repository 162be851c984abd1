"""What administrators see and change: health, secrets, deliveries and their attempts."""
