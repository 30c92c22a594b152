"""One method for each request, and what a controller does because it is active."""
