"""One controller process: its settings, its parts put together, its start and its end."""
