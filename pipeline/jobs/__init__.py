"""The jobs: each takes a session and paths, and returns its result as values and tables."""
