"""One broker's way through its life: who it says it is, its state machine, its session."""
