"""Incidents of the partitions of some topics, found in arrays of their versions."""
