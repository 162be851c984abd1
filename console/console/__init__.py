"""The administrator interface: pages for the administrators and staff of a company."""
