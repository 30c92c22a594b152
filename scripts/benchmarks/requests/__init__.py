"""What requests and decisions cost: by themselves, many at once, and on a large cluster."""
