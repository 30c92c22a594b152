"""The parts of a decision: its result, its inputs, and the origin of the request."""
