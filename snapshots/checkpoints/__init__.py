"""Images as checkpoint files, and images from files."""
