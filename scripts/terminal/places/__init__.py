"""The cluster that a command is about, by its options, the environment and the kept contexts together."""
