"""One change after another: the event queue, what is appended, and who waits for it."""
