"""The state that the log adds up to: images, deltas, replay, digests and the content of checkpoint files."""
