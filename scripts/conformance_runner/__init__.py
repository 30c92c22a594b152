"""Runs conformance vectors, what Apache Kafka's own classes decided on random inputs, against the controller.

It translates names and forms and holds no rule of its own. Of ours it imports the controller and the image, and of the
log what their records are made of: record types, ids, errors, and the framing of a batch.
"""
