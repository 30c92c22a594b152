"""The obeying side: the broker lifecycle, the metadata loader, publishers, and replica managers."""
