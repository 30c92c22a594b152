"""Lines beside the log: who asked for what was written, and what was refused."""
