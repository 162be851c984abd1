"""Who lives where: transitions, leases, unit status."""
