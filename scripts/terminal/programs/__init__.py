"""The answers and failures of commands as JSON, which programs read."""
