"""Shared by all commands: questions to controllers, values for people, exit codes, progress."""
