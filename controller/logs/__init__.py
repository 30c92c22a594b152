"""The logs a controller writes besides the metadata log: requests and their origin, refusals, changes."""
