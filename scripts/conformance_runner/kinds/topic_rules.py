"""``topic_names_configs``: which names a topic can have, and which configs a topic or another resource."""

from __future__ import annotations

from typing import Any

from quorate.controller.configs.resources import RESOURCE_TYPES, ConfigResource, check_configs
from quorate.controller.configs.topic_configs import check_topic_configs
from quorate.controller.protocol.topic_names import has_collision_chars, name_problem, unified
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.conformance_runner.comparison import differences
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form


def run_vector(vector: Any) -> VectorOutcome:
    """Names, errors and sentences."""
    given, expected = vector["input"], _with_code(vector["expected"])
    if given["kind"] == "topic_name":
        got = _name(given["name"])
    elif given["kind"] == "topic_collision":
        got = _collision(given["a"], given["b"])
    else:
        got = _configs(given)
    return VectorOutcome(vector["id"], differences(expected, got, ignores=("class",)))


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


def _configs(given: Form) -> Form:
    try:
        if given["kind"] == "log_config":
            check_topic_configs(given["configs"])
        else:
            resource = ConfigResource(RESOURCE_TYPES[given["resource_type"]], given["resource_name"])
            check_configs(resource, given["configs"], {})
    except ApiError as refusal:
        return {"ok": False, "exception": {"error": refusal.code.name, "message": refusal.message}}
    return {"ok": True}


def _with_code(expected: Form) -> Form:
    """A ConfigException has no code of its own: Kafka's controller answers INVALID_CONFIG."""
    exception = expected.get("exception")
    if exception is None or "error" in exception:
        return expected
    return expected | {"exception": exception | {"error": ErrorCode.INVALID_CONFIG.name}}
