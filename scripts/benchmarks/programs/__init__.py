"""Fresh processes that benchmarks measure in: voters, decisions, loads."""
