"""Ways in and out: signing in and out, invitations, resets."""
