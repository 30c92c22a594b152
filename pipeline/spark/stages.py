"""The work that Spark has under way, for showing progress."""

from __future__ import annotations

from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession


class LookFailed(Exception):
    """The session has ended, or is about to."""


@dataclass(frozen=True, slots=True)
class SparkStage:
    """A stage that is running.

    Attributes:
        name: what runs in it, as Spark calls it. tasks, done: how many it has, and how many of them are done.
    """

    stage_id: int
    name: str
    tasks: int
    done: int


def running_stages(spark: SparkSession) -> list[SparkStage]:
    """Return the stages that are running now, in the order of their ids. May be called from any thread.

    Raises:
        LookFailed: there is nothing to look at any more.
    """
    try:
        tracker = spark.sparkContext.statusTracker()
        infos = [(stage_id, tracker.getStageInfo(stage_id)) for stage_id in sorted(tracker.getActiveStageIds())]
    except (Py4JError, OSError, AttributeError) as error:
        raise LookFailed from error
    return [
        SparkStage(stage_id, info.name.partition(" at ")[0], info.numTasks, info.numCompletedTasks)
        for stage_id, info in infos
        if info is not None
    ]
