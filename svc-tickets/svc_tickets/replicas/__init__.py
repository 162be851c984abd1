"""Companies, places, staff and vendors of other contexts, as this one knows them."""
