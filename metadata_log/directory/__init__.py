"""A node's metadata directory: whose it is, its vote, and its files as others read them."""
