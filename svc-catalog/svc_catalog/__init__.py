"""Properties, units, assets, vendors, inspections, meters and notices."""
