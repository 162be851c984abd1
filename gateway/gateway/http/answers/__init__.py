"""How each kind of operation is answered, once its request is let in."""
