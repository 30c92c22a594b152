"""The content of the log: record types, batches, codec, segment files, in Apache Kafka's own log format."""
