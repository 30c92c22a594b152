"""Two states beside each other: what is on one side only, and what differs, field by field."""
