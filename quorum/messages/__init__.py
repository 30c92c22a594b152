"""What nodes say to each other: the closed list, its bytes, and when a message may leave."""
