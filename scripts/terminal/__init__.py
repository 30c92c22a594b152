"""What commands share: questions to controllers, values for people, exit codes, progress."""
