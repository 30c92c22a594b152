"""The messages between nodes: the closed list, their bytes, and the rule for when a message may leave."""
