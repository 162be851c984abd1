"""Companies and their settings. Also serves the creation of their administrators."""
