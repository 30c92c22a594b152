"""The operator's hands: the quorate command line, local clusters, simulation, drills and benchmarks."""
