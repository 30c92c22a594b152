"""What the log adds up to: the metadata image, its deltas, replay, and the content of checkpoint files."""
