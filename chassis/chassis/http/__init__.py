"""HTTP/1.1 for the processes that strangers reach: limits, budgets and deadlines before anybody is known."""
