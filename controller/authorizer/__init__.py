"""Authorization by ACLs: whether a principal may do something to a resource, by Kafka's rules."""
