"""`quorate snapshot`: checkpoints taken, listed, verified, restored and exported."""
