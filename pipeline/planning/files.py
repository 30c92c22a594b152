"""A plan as files: the JSON form that Kafka's reassignment tool and `quorate reassign apply` take."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from quorate.controller.planning.cluster import NONE, ReassignmentPlan
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX
from quorate.pipeline.errors import PipelineError
from quorate.pipeline.planning.tables import NamedCluster


class PlanNotWritten(PipelineError):
    """The files of a plan cannot be made; none of them is there."""


def documents(named: NamedCluster, plan: ReassignmentPlan) -> Iterator[dict[str, Any]]:
    """Yield the changed partitions of a plan, as many at once as one request may name.

    Each document can be carried out by itself: a partition is in one of them only, and follows the rules before and
    after it.
    """
    ids = plan.before.brokers.ids.tolist()
    rows = plan.changed.tolist()
    for start in range(0, len(rows), RECORDS_PER_OPERATION_MAX):
        part = rows[start : start + RECORDS_PER_OPERATION_MAX]
        partitions = [
            {
                "topic": str(named.topics[row]),
                "partition": int(named.partitions[row]),
                "replicas": [ids[one] for one in replicas if one != NONE],
            }
            for row, replicas in zip(part, plan.after[part].tolist(), strict=True)
        ]
        yield {"version": 1, "partitions": partitions}


def write_plan(named: NamedCluster, plan: ReassignmentPlan, directory: Path) -> list[Path]:
    """Write a plan into a new directory, all files of it or none; return them in the order to be carried out.

    Raises:
        PlanNotWritten: the directory is there already and not empty, or the disk refuses.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise PlanNotWritten(f"{directory} is there already: name a directory that is not, for the plan's files")
    unfinished = directory.with_name(f".{directory.name}.unfinished")
    names = []
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(mode=0o700)  # refused where somebody else has put a link or a directory there
        for number, document in enumerate(documents(named, plan), start=1):
            names.append(f"plan-{number:03d}.json")
            text = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
            (unfinished / names[-1]).write_text(text + "\n", encoding="utf-8")
        # Over an empty directory too.
        unfinished.replace(directory)
    except OSError as error:
        with suppress(OSError):
            shutil.rmtree(unfinished)
        raise PlanNotWritten(f"{directory} cannot be written: {error.strerror or error}") from error
    return [directory / name for name in names]
