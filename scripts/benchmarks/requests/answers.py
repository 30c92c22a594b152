"""``answers``: what may be stopped, in a large cluster."""

from __future__ import annotations

import time
from typing import Final

from quorate.controller.answers.can_stop import reasons_against, stop_brokers
from quorate.controller.api.answers.answer_models import StopManner
from quorate.controller.api.answers.stop_models import NAMED_MAX
from quorate.controller.process.settings_parts import default_parts
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.large_cluster import BROKERS, PARTITIONS_PER_TOPIC, large_image
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.snapshots.image.image import MetadataImage

_PARTITIONS: Final = 1_000_000
_ANSWER: Final = FigureTarget(1.0)
_QUESTIONS: Final[dict[str, tuple[list[int], StopManner]]] = {
    "one broker, in order": ([1], "shutdown"),
    "one broker, crashed": ([1], "crash"),
    "four brokers, in order": ([1, 2, 3, 4], "shutdown"),
}


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Every question once a run."""
    count = workspace.scaled(_PARTITIONS, PARTITIONS_PER_TOPIC)
    workspace.say(f"answers: making an image of {count:,} partitions")
    image = large_image(count)
    taken: dict[str, list[float]] = {name: [] for name in _QUESTIONS}
    for _ in range(workspace.runs):
        for name, (brokers, manner) in _QUESTIONS.items():
            taken[name].append(_cpu_s(image, brokers, manner))
    return BenchmarkOutcome(
        f"one process, no HTTP; an image of {count:,} partitions, {BROKERS} brokers in a ring, factor 3, all in sync; "
        f"processor time from the question to the reasons, with up to {NAMED_MAX:,} partitions by name",
        tuple(Figure(name, "s", tuple(samples), (_ANSWER,)) for name, samples in taken.items()),
    )


def _cpu_s(image: MetadataImage, brokers: list[int], manner: StopManner) -> float:
    config = default_parts(node_id=1, cluster_id="benchmark").config
    start = time.process_time()
    reasons_against(stop_brokers(image, config, brokers, manner), NAMED_MAX)
    return time.process_time() - start
