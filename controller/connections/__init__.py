"""Connections to an HTTP server: the places for them, how long a head may take, and the open files that they use."""
