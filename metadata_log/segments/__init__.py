"""Segment files: named, written, walked, and what a crash leaves of them."""
