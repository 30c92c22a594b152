"""Configs and features: what there are, which values they take, and their changes."""
