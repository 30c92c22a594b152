"""What happened to the partitions of some topics, found in arrays of their versions."""
