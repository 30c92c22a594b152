"""The forms of the HTTP API that servers and clients share: models, bodies, errors, headers."""
