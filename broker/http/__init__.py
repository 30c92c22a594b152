"""A broker process's HTTP API: reads of its image and of itself."""
