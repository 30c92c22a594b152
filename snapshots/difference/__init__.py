"""Differences between two images, and a log told as differences."""
