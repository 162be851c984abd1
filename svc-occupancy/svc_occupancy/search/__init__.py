"""How people find residents: by name, phone number or e-mail address."""
