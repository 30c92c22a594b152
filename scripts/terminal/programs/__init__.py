"""What programs read of a command: its answer and its failure as JSON."""
