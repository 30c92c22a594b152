"""What the routes do, and images as the replies that they give."""
