"""Brokers and controllers in the cluster: registration, sessions, fencing, blocks of producer ids."""
