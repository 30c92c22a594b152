"""A node's storage: its files on disk, and the threads and queues that write them."""
