"""Names of clients from certificates: distinguished names as text, and the rules that map them to principals."""
