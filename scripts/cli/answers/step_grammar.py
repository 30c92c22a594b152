"""Events as typed: `stop broker 12, start broker 13, crash rack a, lose directory ID, apply FILE, catch up`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from quorate.controller.api.answers.answer_models import WhatIfEvent, WhatIfStep
from quorate.controller.protocol.partitions import ReassignablePartition, ReassignableTopic
from quorate.metadata_log.errors import InvalidId
from quorate.metadata_log.ids import uuid_from_text
from quorate.scripts.cli.topics.json_files import ReassignmentFile, read_json
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
    topics: dict[str, list[ReassignablePartition]] = {}
    for planned in read_json(path, ReassignmentFile).partitions:
        moved = ReassignablePartition(partition_index=planned.partition, replicas=planned.replicas)
        topics.setdefault(planned.topic, []).append(moved)
    return [ReassignableTopic(name=name, partitions=partitions) for name, partitions in topics.items()]
