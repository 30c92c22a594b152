"""Everything that the log adds up to at one offset, as an immutable value."""
