"""Runs conformance vectors, what Apache Kafka's own classes decided on random inputs, against the controller."""
