"""Spark itself: Java, memory, one session, a cluster of processes, and how it fails and ends."""
