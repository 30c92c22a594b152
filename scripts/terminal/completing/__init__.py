"""Completion of words of a command line: by names that the cluster, or this machine, has."""
