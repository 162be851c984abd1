"""Properties, units and assets, and the places and plans that they name."""
