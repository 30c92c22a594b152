"""Outages in words: causes, stories, and events in the order of time."""
