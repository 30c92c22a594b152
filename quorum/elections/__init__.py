"""Elections: their timing, the right to vote, and the checks on messages that claim an epoch."""
