"""``topic_names_configs``: which names a topic can have, and which configs."""

from __future__ import annotations

from typing import Any

from controller.topic_names import has_collision_chars, name_problem, unified
from metadata_log.errors import ErrorCode
from scripts.conformance_runner.comparison import Difference, differences
from scripts.conformance_runner.outcome import Outcome
from scripts.conformance_runner.record_form import Form


def run_vector(vector: Any) -> Outcome:
    """Names, errors and sentences."""
    given, expected = vector["input"], vector["expected"]
    if given["kind"] == "topic_name":
        got = _name(given["name"])
    elif given["kind"] == "topic_collision":
        got = _collision(given["a"], given["b"])
    else:
        return Outcome(vector["id"], [Difference("", expected, "the controller does not check these configs yet")])
    return Outcome(vector["id"], differences(expected, got, ignores=("class",)))


def _name(name: str) -> Form:
    problem = name_problem(name)
    if problem is None:
        return {"ok": True}
    return {"ok": False, "exception": {"error": ErrorCode.INVALID_TOPIC_EXCEPTION.name, "message": problem}}


def _collision(name: str, other: str) -> Form:
    return {
        "collides": unified(name) == unified(other),
        "a_has_collision_chars": has_collision_chars(name),
        "a_unified": unified(name),
    }
