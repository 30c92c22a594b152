"""Partitions and replicas counted by what they are, so that no answer has to go through them."""
