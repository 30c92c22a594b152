"""What drills measured, run after run: the outcomes that `quorate drill run --report` stores."""
