"""Placeholder; see the contract."""
