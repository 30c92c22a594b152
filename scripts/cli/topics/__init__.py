"""`quorate topics`, `partitions`, `configs`, `reassign`, `elect`: topics, and where their replicas are."""
