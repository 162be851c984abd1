"""Vendors, the businesses behind them, their insurance and holds."""
