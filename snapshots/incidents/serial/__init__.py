"""The rules about partitions for one log in one process: over plain values, without Spark and without arrow."""
