"""``scripts/test --explore``: the same promises as in the tests, tried on examples and seeds that nobody has seen."""
