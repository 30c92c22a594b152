"""A quorum that lost its majority, and how it comes back: survey, plan, apply, verify."""
