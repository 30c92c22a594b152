"""What a node keeps on its disk, and the threads and queues by which it is written."""
