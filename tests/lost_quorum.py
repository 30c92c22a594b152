"""A cluster whose controllers do not run, for surveys of directories and founding anew."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from quorate.metadata_log.batches.batch import place_batch
from quorate.metadata_log.batches.builder import build_batches
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.metadata_log.records.records import (
    ConfigRecord,
    Record,
    VersionedRecord,
)
from quorate.scripts.cluster.making import Ports, controller_directory, make_twin
from quorate.scripts.lost_majority.directory_survey import SurveyedDirectory, survey_directory
from quorate.scripts.lost_majority.judgement import Judgement, RunningController, judge
from quorate.scripts.lost_majority.plan import RecoveryPlan, Targets, plan_from_survivors
from tests.log_support import SMALL_SEGMENTS, flush

#: Epoch of the captured log, and one above.
EPOCH = 4
CHANGE = ConfigRecord(4, "", "min.insync.replicas", "2")


class Lost:
    """A cluster whose controllers do not run: three directories with the same captured state, one epoch."""

    def __init__(self, directory: Path, source: Path) -> None:
        self.directory = directory
        made = make_twin(directory, source, Ports.from_base(20_000), "none")
        self.paths = {one.id: controller_directory(directory, one) for one in made.controllers}

    def write(self, node: int, epoch: int, *records: Record) -> int:
        """Append a batch to a node's log, synced; its new end."""
        log = MetadataLog.open(RealDisk(), str(self.paths[node] / LOG_DIRECTORY_NAME), SMALL_SEGMENTS)
        (batch,) = build_batches([VersionedRecord(record, 0) for record in records], 1_800_000_000_000)
        end = log.append(place_batch(batch, log.end_offset, epoch))
        flush(log)
        log.close()
        return end

    def look(self, *nodes: int) -> list[SurveyedDirectory]:
        """A survey of these nodes; of all without any."""
        return [survey_directory(self.paths[node]) for node in nodes or self.paths]

    def targets(self) -> Targets:
        paths = tuple((node, str(path)) for node, path in sorted(self.paths.items()))
        return Targets(voters=paths, local_cluster=str(self.directory))

    def plan(self, holdings: list[SurveyedDirectory], answers: Iterable[RunningController] = ()) -> RecoveryPlan:
        return self.plan_of(judge(holdings, list(answers)), holdings)

    def plan_of(self, judgement: Judgement, holdings: list[SurveyedDirectory]) -> RecoveryPlan:
        return plan_from_survivors(judgement, holdings, self.targets())
