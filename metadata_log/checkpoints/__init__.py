"""Checkpoint files: written, sent, received, removed; what is in them is opaque here."""
