"""Which replicas lie in a log directory that is online, and which one the others go to."""
