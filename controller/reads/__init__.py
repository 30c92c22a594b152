"""Questions to states: searches, counts, digests, the past, and the verdict on a cluster."""
