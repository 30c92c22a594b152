"""Benchmarks of real processes on this machine's disk. They print method, machine and device; they are not tests."""
