"""When to ask for an election, who may vote, and whose word counts."""
