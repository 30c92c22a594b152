"""The controllers as a broker uses them: the feed of each, and requests to whichever is active."""
