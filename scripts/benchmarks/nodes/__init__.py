"""Benchmarks of nodes, their costs and their time to come back: commits, failovers, restarts, checkpoints."""
