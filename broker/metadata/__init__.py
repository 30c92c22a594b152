"""The metadata as this process has them: loaded, kept, and compared with the controllers'."""
