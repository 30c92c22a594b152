"""Identities of callers: what a request proves, and the principal, and the node, that its sender is by that."""
