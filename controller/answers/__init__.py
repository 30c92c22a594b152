"""Answers to operators' questions, made by the controller's own decisions on a state that is nobody's. Pure."""
