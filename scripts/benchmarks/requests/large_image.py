"""``large-image``: every answer about a large cluster, and how long it takes the event loop for itself."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from quorate.controller.answers.rehearsal import Rehearsal
from quorate.controller.client.connection import Request
from quorate.controller.connections.http_counts import HttpCounts
from quorate.controller.http.handlers.metrics import render_metrics
from quorate.controller.http.ports import Node
from quorate.controller.process.image_answers import NoLog, StillAnswers
from quorate.controller.process.image_node import node_of
from quorate.controller.process.settings_parts import default_parts
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.large_cluster import BROKERS, PARTITIONS_PER_TOPIC, large_image
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.snapshots.image.image import MetadataImage

_PARTITIONS: Final = 10_000_000
_ANSWER: Final = FigureTarget(1.0)
_LOOP: Final = FigureTarget(10.0, percentile=100)
_TICK_S: Final = 0.001
_TIMEOUT_MS: Final = 60_000.0
_LOST: Final = 3
#: With it, all brokers that a twelfth of the partitions is on.
_NEIGHBOURS: Final = (4, 5)
_QUESTIONS: Final[dict[str, tuple[str, Mapping[str, str | int]]]] = {
    "status": ("/v1/status", {}),
    "status with causes": ("/v1/status", {"explain": "true"}),
    "cluster": ("/v1/cluster", {}),
    "brokers": ("/v1/brokers", {}),
    "one broker": (f"/v1/brokers/{_LOST}", {}),
    "explain": ("/v1/answers/explain", {}),
    "explain broker": ("/v1/answers/explain", {"broker": _LOST}),
    "explain topic": ("/v1/answers/explain", {"topic": "topic-000001"}),
    "can-stop": ("/v1/answers/can-stop", {"brokers": "5"}),
    "partitions under-replicated": ("/v1/partitions", {"conditions": "under-replicated"}),
    "partitions of a name": ("/v1/partitions", {"names": "topic-000001"}),
    "topics": ("/v1/topics", {}),
    "reassignments": ("/v1/partition-reassignments", {}),
}


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Every question once a run, in both states."""
    count = workspace.partitions or workspace.scaled(_PARTITIONS, PARTITIONS_PER_TOPIC)
    workspace.say(f"large-image: making an image of {count:,} partitions")
    well = large_image(count)
    rehearsal = Rehearsal(well, default_parts(node_id=1, cluster_id="benchmark").config)
    rehearsal.crash([_LOST])
    states = {"all in sync": well, "a broker lost": rehearsal.image}
    rehearsal.crash(_NEIGHBOURS)
    states["three lost"] = rehearsal.image
    figures = []
    for state, image in states.items():
        taken: dict[str, list[tuple[float, float]]] = {}
        for _ in range(workspace.runs):
            for name, found in asyncio.run(_ask_all(image)).items():
                taken.setdefault(name, []).append(found)
        for name, found_of in taken.items():
            seconds, blocked = zip(*found_of, strict=True)
            workspace.say(f"large-image: {state}: {name}: {seconds} s, {blocked} ms")
            figures.append(Figure(f"{state}: {name}", "s", tuple(seconds), (_ANSWER,)))
            figures.append(Figure(f"{state}: {name}, loop", "ms", tuple(blocked), (_LOOP,)))
    return BenchmarkOutcome(
        f"one process, no HTTP; an image of {count:,} partitions, {BROKERS} brokers in a ring, factor 3: all in sync, "
        f"without broker {_LOST}, and without two of its neighbours either; time from the question to the answer's "
        f"bytes, and the longest time by which a timer that is due every {_TICK_S * 1000:.0f} ms on the same loop was "
        "late, as far as this process had a processor meanwhile",
        tuple(figures),
    )


async def _ask_all(image: MetadataImage) -> dict[str, tuple[float, float]]:
    node = node_of(image, "benchmark", None, NoLog())
    found = {name: await _ask(node, *question) for name, question in _QUESTIONS.items()}
    begun = time.perf_counter()
    async with _watched() as late:
        await render_metrics(node, HttpCounts())
    return found | {"metrics": (time.perf_counter() - begun, max(late) * 1000)}


async def _ask(node: Node, path: str, parameters: Mapping[str, str | int]) -> tuple[float, float]:
    """Seconds to the answer, and the longest time, in milliseconds, for which the loop did nothing else."""
    answers, begun = StillAnswers(lambda: node), time.perf_counter()
    async with _watched() as late:
        await answers.send(Request("GET", path, _TIMEOUT_MS, parameters), is_repeatable=True)
    return time.perf_counter() - begun, max(late) * 1000


@asynccontextmanager
async def _watched() -> AsyncIterator[list[float]]:
    """Seconds by which each tick is late, while this goes on."""
    late = [0.0]

    async def tick() -> None:
        while True:
            due, used = time.perf_counter() + _TICK_S, time.process_time()
            await asyncio.sleep(_TICK_S)
            # What others had of the processor is not this process's doing.
            late.append(min(time.perf_counter() - due, time.process_time() - used))

    async with asyncio.TaskGroup() as group:
        ticking = group.create_task(tick())
        await asyncio.sleep(2 * _TICK_S)
        yield late
        await asyncio.sleep(2 * _TICK_S)
        ticking.cancel()
