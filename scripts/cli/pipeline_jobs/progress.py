"""The progress of Spark's stages, one line each on a terminal; nowhere else anything is drawn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from quorate.scripts.terminal.screen import Screen

if TYPE_CHECKING:
    from quorate.pipeline.spark.session import SparkSession

_LOOK_S: Final = 0.5


class StageProgress:
    """Draws the stages that are running, looked at twice a second from a thread of its own."""

    def __init__(self, display: Progress) -> None:
        self._display = display
        self._starting: TaskID | None = display.add_task("starting Spark", total=None, count="")
        self._lines: dict[int, TaskID] = {}

    @contextmanager
    def of(self, spark: SparkSession) -> Iterator[None]:
        """Draw the stages of this session until the block ends."""
        if self._starting is not None:
            self._display.remove_task(self._starting)
            self._starting = None
        if self._display.disable:
            yield
            return
        ended = threading.Event()
        looking = threading.Thread(target=self._look, args=(spark, ended), name="stage-progress", daemon=True)
        looking.start()
        try:
            yield
        finally:
            ended.set()
            looking.join()

    def _look(self, spark: SparkSession, ended: threading.Event) -> None:
        from quorate.pipeline.spark.stages import LookFailed, running_stages

        while not ended.wait(_LOOK_S):
            try:
                stages = running_stages(spark)
            except LookFailed:
                return
            for gone in self._lines.keys() - {stage.stage_id for stage in stages}:
                self._display.remove_task(self._lines.pop(gone))
            for stage in stages:
                if stage.stage_id not in self._lines:
                    self._lines[stage.stage_id] = self._display.add_task(stage.name, total=stage.tasks, count="")
                count = f"{stage.done} of {stage.tasks} tasks"
                self._display.update(self._lines[stage.stage_id], completed=stage.done, count=count)


@contextmanager
def stage_progress() -> Iterator[StageProgress]:
    """A place for the lines of stages on standard error; they vanish when the block ends."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    console = Screen(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as display:
        yield StageProgress(display)
