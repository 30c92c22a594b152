"""Checkpoints of a node: its own ones, and those on their way to a follower."""
