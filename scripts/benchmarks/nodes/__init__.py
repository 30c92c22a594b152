"""What nodes cost and how soon they are back: commits, failovers, restarts, checkpoints."""
