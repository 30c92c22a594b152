"""`quorate log`, `image`, `history`: what is in a log, what it adds up to, and who asked for it."""
