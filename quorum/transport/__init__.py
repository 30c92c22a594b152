"""Connections between nodes: dialled, proved, kept alive and given up."""
