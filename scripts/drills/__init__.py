"""Disasters rehearsed on real processes: a steady state, a hypothesis with numbers, a fault, a measured verdict."""
