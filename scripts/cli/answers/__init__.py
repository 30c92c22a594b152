"""Questions before something is done: what may be stopped, and what would come of it."""
