"""Changes: each record once, in the order of its last change, exact under concurrent writers."""
