"""Moving partitions for a purpose: brokers are emptied, replication factors set, a cluster evened out."""
