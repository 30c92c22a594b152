"""Records one at a time: their types, the schema of each, and their bytes."""
