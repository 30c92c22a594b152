"""Records folded into images: the only thing that changes state."""
