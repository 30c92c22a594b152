"""The log of a node: opened, appended to, cut, and set aside where it is damaged."""
