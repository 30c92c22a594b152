"""The deterministic simulation: production code on virtual clocks, wires and disks."""
