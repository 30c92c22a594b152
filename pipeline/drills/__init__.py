"""Measurements of drills, run after run: the outcomes that `quorate drill run --report` stores."""
