"""Which cluster a command is about: what its options, the environment and the kept contexts say together."""
