"""Real processes on networks that fail: controllers, brokers and clients in namespaces, on a switch of our own."""
