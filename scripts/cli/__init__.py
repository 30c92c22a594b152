"""The `quorate` command line: one module per group of commands."""
