"""The kinds of vectors, and how each is put to the controller."""
