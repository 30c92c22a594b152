"""The deciding side: the quorum controller, its control managers, and the HTTP API with its models."""
