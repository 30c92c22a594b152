"""Mutated inputs: every reader of bytes must give a typed error or a correct result, soon, and change nothing."""
