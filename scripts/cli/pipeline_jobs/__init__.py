"""The jobs of `quorate pipeline`, one a module, and what they have in common (`running`)."""
