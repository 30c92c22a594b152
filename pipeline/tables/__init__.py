"""Tables on disk: their formats, how they become visible, and states kept in them."""
