"""What simulated machines are made of: virtual time, and disks that know what a crash leaves."""
