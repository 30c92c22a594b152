"""Reading files of vectors, and telling the kinds of vectors apart by what is in them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from quorate.scripts.conformance_runner.kinds import (
    authorizer,
    full_controller,
    partition_change,
    placement,
    principal_mapping,
    reassignment,
    scram,
    topic_rules,
)
from quorate.scripts.conformance_runner.outcome import VectorOutcome

RUNNERS: Final[dict[str, Callable[[Any], VectorOutcome]]] = {
    "partition_change": partition_change.run_vector,
    "reassignment": reassignment.run_vector,
    "placement": placement.run_vector,
    "full_controller": full_controller.run_vector,
    "topic_names_configs": topic_rules.run_vector,
    "authorizer": authorizer.run_vector,
    "principal_mapping": principal_mapping.run_vector,
    "scram": scram.run_vector,
}
_GZIP_MAGIC: Final = b"\x1f\x8b"
_REASSIGNMENT_KINDS: Final = ("start", "complete", "revert")
_NAME_KINDS: Final = ("rules", "certificate_name")
_SCRAM_KINDS: Final = ("credential", "parse_credential", "name", "exchange")
_TOPIC_KINDS: Final = ("topic_name", "topic_collision", "log_config", "controller_config")


class BadVectorFile(Exception):
    """A file that is no file of vectors; the message names it, the line and the reason."""


def read_vectors(path: Path) -> Iterator[tuple[str, Any]]:
    """Every vector with its kind, in order.

    Raises:
        BadVectorFile: the file cannot be read, or a line of it is no vector.
    """
    number = 0
    try:
        with path.open("rb") as start:
            is_packed = start.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
        with gzip.open(path, "rb") if is_packed else path.open("rb") as lines:
            for line in lines:
                number += 1
                yield _parsed(line)
    except (OSError, EOFError, zlib.error, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise BadVectorFile(f"{path}, line {number}: {reason}" if number else f"{path}: {reason}") from error
    if number == 0:
        raise BadVectorFile(f"{path}: no vectors in it")


def _parsed(line: bytes) -> tuple[str, Any]:
    vector = json.loads(line)
    types = {"id": str, "input": dict, "expected": dict}
    if not isinstance(vector, dict) or not all(isinstance(vector.get(name), kind) for name, kind in types.items()):
        raise ValueError("a vector is an object with a string id, an object input and an object expected")
    return _kind(vector["id"], vector["input"]), vector


def _kind(vector_id: str, given: dict[str, Any]) -> str:
    if {"settings", "ops"} <= given.keys():
        return "full_controller"
    if {"partition", "acceptable_leaders"} <= given.keys():
        return "partition_change"
    if {"random_seed", "brokers", "calls"} <= given.keys():
        return "placement"
    if {"acls", "authorize"} <= given.keys():
        return "authorizer"
    if given.get("kind") in _REASSIGNMENT_KINDS:
        return "reassignment"
    if given.get("kind") in _NAME_KINDS:
        return "principal_mapping"
    if given.get("kind") in _SCRAM_KINDS:
        return "scram"
    if given.get("kind") in _TOPIC_KINDS:
        return "topic_names_configs"
    raise ValueError(f"vector {vector_id} is of no known kind ({', '.join(RUNNERS)})")
