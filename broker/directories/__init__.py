"""Log directories: finds the replicas that lie in one that is online, and chooses one for each of the others."""
