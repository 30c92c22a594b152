"""Topics and where their replicas are: creation, placement, reassignment, deletion."""
