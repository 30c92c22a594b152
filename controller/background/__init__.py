"""Long work on the state beside the loop: checkpoints and digests, and the pace of it."""
