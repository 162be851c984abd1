"""The pages of property notices."""
