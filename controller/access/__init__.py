"""Permissions and limits of clients: ACLs, quotas, credentials, delegation tokens."""
