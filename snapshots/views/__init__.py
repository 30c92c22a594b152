"""Images as people and programs are shown them."""
