"""Benchmarks of requests and decisions: alone, many at once, and on a large cluster."""
