"""The parts of simulated machines: virtual time, and disks that know what a crash leaves."""
