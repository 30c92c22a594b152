"""How entries reach a majority: the leader's side, the follower's, and what is committed."""
