"""Kernel regression: modes, the effective ridge, learning curves."""
