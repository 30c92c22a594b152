"""Immutable maps with cheap successors."""
