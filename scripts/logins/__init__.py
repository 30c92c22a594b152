"""Logins of commands: by a password from a private file or a person, and tokens that are kept until they end."""
