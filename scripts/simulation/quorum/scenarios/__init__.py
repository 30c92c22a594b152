"""Named scenarios: schedules that are too rare to wait for, each with the claim it makes."""
