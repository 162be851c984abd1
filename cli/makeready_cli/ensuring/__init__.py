"""`makeready company ensure`: companies as a file declares them."""
