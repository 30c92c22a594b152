"""The HTTP server of one node: connections, routing, forwarding, and the fast path beside the framework."""
