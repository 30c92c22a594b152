"""Who may do what, and how much of it: ACLs, quotas, credentials, delegation tokens."""
