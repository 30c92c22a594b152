"""The production quorum in virtual time: nodes, their network, faults, and what must hold."""
