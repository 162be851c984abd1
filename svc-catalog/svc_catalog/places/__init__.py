"""Properties, their buildings, floors and floorplans, units, other locations, and assets."""
