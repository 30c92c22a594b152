"""The forms of answers about the whole cluster: how it is, why, and what would come of events."""
