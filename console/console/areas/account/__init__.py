"""The own account: password, passkeys, authenticator app, sessions, theme."""
