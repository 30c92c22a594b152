"""Who decides: the quorum controller, its control managers, and the HTTP API with its request and response models."""
