"""Events as typed: `stop broker 12, start broker 13, crash rack a, lose directory ID, apply FILE, catch up`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import typer

from quorate.controller.api.answers.answer_models import WhatIfEvent, WhatIfStep
from quorate.controller.protocol.partitions import ReassignablePartition, ReassignableTopic
from quorate.metadata_log.errors import InvalidId
from quorate.metadata_log.ids import uuid_from_text
from quorate.scripts.cli.plans.plan_files import PLAN_BYTES_MAX, parse_plan
from quorate.scripts.cli.topics.json_files import ReassignmentFile, parse_json, read_bytes
from quorate.scripts.terminal.arguments import broker_ids
from quorate.scripts.terminal.requesting import make

GRAMMAR: Final = (
    "stop|crash|start broker ID..., stop|crash|start rack NAME..., lose directory ID..., apply FILE, catch up"
)
_VERBS: Final[dict[str, WhatIfEvent]] = {"stop": "stop", "crash": "crash", "start": "start"}


def parse_steps(words: Sequence[str]) -> list[WhatIfStep]:
    """The events that these words say, with commas between them.

    Raises:
        typer.BadParameter: they say none; names the part that is wrong, and what may be said.
    """
    parts = [part.split() for part in " ".join(words).split(",")]
    if not any(parts):
        raise typer.BadParameter(f"what is to happen? Say {GRAMMAR}", param_hint="STEPS")
    return [_step(part) for part in parts]


def _step(words: list[str]) -> WhatIfStep:
    match words:
        case [("stop" | "crash" | "start") as verb, "broker" | "brokers", *ids] if ids:
            chosen = list(dict.fromkeys(id_ for text in ids for id_ in broker_ids(text, "STEPS")))
            return make(WhatIfStep, event=_VERBS[verb], brokers=chosen)
        case [("stop" | "crash" | "start") as verb, "rack" | "racks", *racks] if racks:
            return make(WhatIfStep, event=_VERBS[verb], racks=racks)
        case ["lose", "directory" | "directories", *ids] if ids:
            return make(WhatIfStep, event="lose-directory", directories=[_directory(text) for text in ids])
        case ["apply", file]:
            return make(WhatIfStep, event="reassign", topics=_moves(Path(file)))
        case ["catch", "up"]:
            return make(WhatIfStep, event="catch-up")
    said = " ".join(words)[:80]
    raise typer.BadParameter(f"{said!r} is no event: say {GRAMMAR}", param_hint="STEPS")


def _directory(text: str) -> bytes:
    try:
        return uuid_from_text(text)
    except InvalidId as error:
        raise typer.BadParameter(str(error), param_hint="STEPS") from None


def _moves(path: Path) -> list[ReassignableTopic]:
    """Those of a file of either kind."""
    data = read_bytes(path, PLAN_BYTES_MAX)
    found = _of_plan(path, data) if _says_format(data) else _of_kafka_file(path, data)
    topics: dict[str, list[ReassignablePartition]] = {}
    for name, moved in found:
        topics.setdefault(name, []).append(moved)
    return [make(ReassignableTopic, name=name, partitions=partitions) for name, partitions in topics.items()]


def _says_format(data: bytes) -> bool:
    """Whether it looks like what `--plan` writes, which begins with its format. No file of Kafka's tools has one."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        return False  # whoever reads it says what is wrong
    return isinstance(content, dict) and "format" in content


def _of_plan(path: Path, data: bytes) -> Iterator[tuple[str, ReassignablePartition]]:
    for number, step in enumerate(parse_plan(path, data).steps, start=1):
        request = step.change.alter_partition_reassignments
        if request is None:
            raise typer.BadParameter(
                f"{path}: step {number} is {step.operation}, and what-if applies no other changes than moves of "
                "partitions",
                param_hint="STEPS",
            )
        yield from ((topic.name, moved) for topic in request.topics for moved in topic.partitions)


def _of_kafka_file(path: Path, data: bytes) -> Iterator[tuple[str, ReassignablePartition]]:
    for planned in parse_json(path, data, ReassignmentFile).partitions:
        yield planned.topic, ReassignablePartition(partition_index=planned.partition, replicas=planned.replicas)
