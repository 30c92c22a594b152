"""The client of the HTTP API that all programs use."""
