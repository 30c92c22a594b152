"""The metadata feed: committed batches for several hundred readers, and how each gets on."""
