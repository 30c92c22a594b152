"""Answers over a state that a program has: what is wrong, what may be stopped, and what would come of events.

``answers_of(image)`` asks as ``ControllerClient.answers`` does, and nobody is asked. See docs/library.md.
"""

from quorate.controller.client.answers import AnswerClient
from quorate.controller.process.image_answers import answers_of, read_image

__all__ = ["AnswerClient", "answers_of", "read_image"]
