"""A quorum inside somebody else's program: real controllers as tasks of its event loop, for its tests."""
