"""``search``: the first page of partitions that fit a filter, in a large cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from quorate.controller.http.handlers.searches import partitions_reply, topics_reply
from quorate.controller.permissions.rights import ALL_RIGHTS
from quorate.controller.process.settings_parts import default_parts
from quorate.controller.reads.partition_search import PartitionSearch
from quorate.controller.reads.search_models import PartitionListParameters, TopicListParameters
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.large_cluster import BROKERS, PARTITIONS_PER_TOPIC, large_image
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.snapshots.image.image import MetadataImage

_PARTITIONS: Final = 1_000_000
_PAGE: Final = 100
#: No question may hold the interpreter for so long that heartbeats are late.
_PAGE_MS: Final = FigureTarget(50.0)

_Question = Callable[[PartitionSearch, MetadataImage], str]


def _partitions(**wanted: str | int) -> _Question:
    parameters = PartitionListParameters.model_validate({"limit": _PAGE, **wanted})
    return lambda search, image: partitions_reply(search, image, parameters, ALL_RIGHTS).model_dump_json()


def _topics(**wanted: str | int) -> _Question:
    parameters = TopicListParameters.model_validate({"limit": _PAGE, **wanted})
    return lambda search, image: topics_reply(search, image, parameters, ALL_RIGHTS).model_dump_json()


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Every question once a run, each of a search that has seen the topics; the first of one that has not."""
    count = workspace.scaled(_PARTITIONS, PARTITIONS_PER_TOPIC)
    workspace.say(f"search: making an image of {count:,} partitions")
    image = large_image(count)
    questions = {
        "partitions in one condition": _partitions(conditions="under-replicated"),
        "... in any of six conditions": _partitions(
            conditions="offline,under-replicated,under-min-isr,at-min-isr,not-preferred,reassigning"
        ),
        "partitions of one broker": _partitions(broker=1),
        "partitions of some topics": _partitions(names="*7*7"),
        "topics led by one broker": _topics(leader=1),
    }
    anew: list[float] = []
    taken: dict[str, list[float]] = {name: [] for name in questions}
    for _ in range(workspace.runs):
        search = PartitionSearch(default_parts(node_id=1, cluster_id="benchmark").config)
        anew.append(_cpu_ms(questions["partitions in one condition"], search, image))
        for name, question in questions.items():
            taken[name].append(_cpu_ms(question, search, image))
    return BenchmarkOutcome(
        f"one process, no HTTP; an image of {count:,} partitions, {PARTITIONS_PER_TOPIC} a topic, {BROKERS} brokers, "
        f"factor 3; processor time from the parameters to the reply as JSON, pages of {_PAGE}; the names of the topics "
        "are put in order by the first question, and again after topics were created, grown or deleted",
        (
            Figure("first question", "ms", tuple(anew)),
            *(Figure(name, "ms", tuple(samples), (_PAGE_MS,)) for name, samples in taken.items()),
        ),
    )


def _cpu_ms(question: _Question, search: PartitionSearch, image: MetadataImage) -> float:
    start = time.process_time()
    question(search, image)
    return (time.process_time() - start) * 1000
