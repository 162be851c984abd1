"""How people sign in: passwords, second factors, passkeys, links, delays after failures."""
