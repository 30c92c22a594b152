"""`quorate incidents` and `quorate timeline`: what happened in a log, told by one process in seconds, without Spark."""
