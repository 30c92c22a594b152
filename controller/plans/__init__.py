"""Plans of changes: the facts that a change goes by, what of them is no longer so, and the way back. Pure."""
