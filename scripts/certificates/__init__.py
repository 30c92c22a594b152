"""Certificates of a small cluster: a CA of its own, and what it issues to controllers, brokers and clients."""
