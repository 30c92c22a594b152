"""Replication of entries to a majority: the leader's side, the follower's, and the commit point."""
