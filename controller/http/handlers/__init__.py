"""The handlers behind the routes, and images as the replies that they give."""
