"""The command line for shells and readers: completion, and manual pages."""
