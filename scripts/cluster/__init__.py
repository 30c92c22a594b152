"""A cluster of real processes on this machine: made, started, watched, broken on purpose, stopped."""
