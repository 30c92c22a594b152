"""SCRAM (RFC 5802, RFC 7677), by which users prove a password that no server knows: both sides."""
