"""`quorate acls`, `quotas`, `users`, `tokens`: who may do what; and `refusals`."""
