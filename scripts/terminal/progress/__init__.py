"""Words on standard error about what takes longer than a second, so that nobody takes a command for stuck."""
