"""Named situations of the whole system, brought about step by step: those that random faults find rarely."""
