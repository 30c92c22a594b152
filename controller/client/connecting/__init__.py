"""The way from a client to a controller: the name of its host, TLS, and what else may answer there."""
