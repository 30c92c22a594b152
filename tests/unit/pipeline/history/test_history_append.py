"""A history that is gone on with: the tables are those of one run, however it was cut, and whatever was killed."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from quorate.metadata_log.records.records import (
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from quorate.pipeline.files.inputs import InputError
from quorate.pipeline.files.storage import files_under
from quorate.pipeline.history import appended
from quorate.pipeline.history.appended import AppendedTables, NotAppendable
from quorate.pipeline.tables import delta
from quorate.pipeline.tables.history_schema import TABLES
from quorate.pipeline.tables.table_reading import read_table
from quorate.scripts.generated_history.making import GenerationPlan, make_history
from tests.pipeline_logs import BEHEADED_LOG, KAFKA, KAFKA_LOG, LogWriter
from tests.serial_history import append_history, delta_tables, in_order

TOPIC = (17).to_bytes(16)
MADE = 2000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A made-up log of some segments, with transactions, removed topics and cleared ELRs."""
    log = tmp_path_factory.mktemp("made")
    make_history(GenerationPlan(MADE, 5, segments=4), log, lambda _: None)
    return log


def require_same(parts: Path, whole: Path) -> None:
    """Row for row; and no version of one thing twice, as its key and its beginning tell."""
    found, expected = delta_tables(parts), delta_tables(whole)
    assert sum(map(len, expected.values()))
    for name, schema in TABLES.items():
        assert found[name].equals(expected[name])
        # Our own readers see what Delta's do.
        assert in_order(read_table(str(parts / name), schema.names), name).equals(expected[name])


def test_tables_that_show_secrets_are_not_gone_on_with_as_such_that_hide_them(tmp_path: Path) -> None:
    append_history([KAFKA / "dynamic-small" / "m1" / "log"], tmp_path, end=31)
    with AppendedTables(tmp_path) as tables:
        tables.require_secrets(hidden=False)
        with pytest.raises(NotAppendable, match="secrets are shown in these tables: go on with --show-secrets"):
            tables.require_secrets(hidden=True)


@pytest.mark.parametrize(
    ("log", "cuts"),
    [
        (None, (820, 1690)),
        (KAFKA_LOG, (2000, 10_990)),
        (BEHEADED_LOG, (15_719, 21_000)),
        (KAFKA / "dynamic-small" / "m1" / "log", (31, 60)),
    ],
)
def test_parts_come_to_the_whole(made: Path, tmp_path: Path, log: Path | None, cuts: tuple[int, ...]) -> None:
    """Cut in batches, in transactions that end or are aborted later, behind the checkpoint, and behind the last one."""
    log = log or made
    for end in (*cuts, None, None):
        append_history([log], tmp_path / "parts", end=end)
    append_history([log], tmp_path / "whole")

    require_same(tmp_path / "parts", tmp_path / "whole")
    notes = []
    for name in ("parts", "whole"):
        (note,) = json.loads((tmp_path / name / "manifest.json").read_text())["clusters"]
        (state,) = (tmp_path / name / "_resume").iterdir()
        assert note["resume"].pop("state") == state.name
        notes.append((note, state.read_bytes()))
    assert notes[0] == notes[1]


def test_only_what_is_new_is_read(made: Path, tmp_path: Path) -> None:
    """Segments before the one in which the tables end are not even there any more."""
    segments = sorted((made / "__cluster_metadata-0").glob("*.log"))
    border = int(segments[-1].name.removesuffix(".log"))
    rest = shutil.copytree(made, tmp_path / "rest")
    for path in segments[:-1]:
        (rest / "__cluster_metadata-0" / path.name).unlink()

    whole = append_history([made], tmp_path / "whole")
    append_history([made], tmp_path / "parts", end=border)
    assert append_history([rest], tmp_path / "parts") <= segments[-1].stat().st_size < whole / 2
    require_same(tmp_path / "parts", tmp_path / "whole")


def test_clusters_come_and_stay_away(tmp_path: Path) -> None:
    """Each goes on by itself: one that is not given is left as it is, a new one begins."""
    logs = [LogWriter(tmp_path / name, name) for name in ("a", "b")]
    out = tmp_path / "parts"
    for number, log in enumerate(logs):
        log.append([TopicRecord("t", TOPIC), *(PartitionRecord(n, TOPIC, (1,), (1,), leader=1) for n in range(3))])
        append_history([logs[0].path], out) if number == 0 else None
        logs[0].append([PartitionChangeRecord(number, TOPIC, leader=-1)])
    append_history([log.path for log in logs], out, mixed=True)
    logs[1].append([PartitionChangeRecord(2, TOPIC, leader=-1)])
    logs[0].append([PartitionChangeRecord(0, TOPIC, leader=1)])
    append_history([logs[1].path], out)
    append_history([logs[0].path], out)

    append_history([log.path for log in logs], tmp_path / "whole", mixed=True)
    require_same(out, tmp_path / "whole")


# --- killed ------------------------------------------------------------------------------------------


class Killed(BaseException):
    """The process is no more: nothing of it runs on."""


def killed_at(step: int, run: Callable[[], Any], patched: pytest.MonkeyPatch) -> bool:
    """Run it until a step that changes a table, or a name on the disk; False where it has no such step."""
    left = [step]

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def at_step(*values: Any, **named: Any) -> Any:
            if not left[0]:
                raise Killed
            left[0] -= 1
            return call(*values, **named)

        return at_step

    with patched.context() as patches:
        patches.setattr(appended, "apply_change", dying(delta.apply_change))
        patches.setattr(AppendedTables, "__exit__", lambda self, *_: self._lock.close())
        for name in ("rename", "replace", "unlink"):
            patches.setattr(os, name, dying(getattr(os, name)))
        try:
            run()
        except Killed:
            return True
    return False


def test_run_that_is_killed_did_nothing_or_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At every step at which it can be. The next run finds it, with more in the log or with nothing new."""
    log = LogWriter(tmp_path / "log", "a")
    log.append([TopicRecord("t", TOPIC), *(PartitionRecord(n, TOPIC, (1,), (1,), leader=1) for n in range(3))])
    append_history([log.path], tmp_path / "first")
    log.append([PartitionChangeRecord(1, TOPIC, leader=-1), ConfigRecord(2, "t", "retention.ms", "1")])
    append_history([log.path], tmp_path / "whole")
    out, step = tmp_path / "parts", 0

    while True:
        shutil.copytree(tmp_path / "first", out)
        was_killed = killed_at(step, lambda: append_history([log.path], out), monkeypatch)
        append_history([log.path], out)
        require_same(out, tmp_path / "whole")
        assert {path.name for path in out.iterdir()} == {*TABLES, "_lock", "_resume", "manifest.json"}
        assert all(len(DeltaTable(out / name).history()) <= 2 for name in TABLES)
        shutil.rmtree(out)
        if not was_killed:
            break
        step += 1
    assert step > 10


# --- refused -----------------------------------------------------------------------------------------


def with_gap(log: LogWriter, other: Path) -> list[Path]:
    """Of the log only the segment behind that in which the tables end."""
    log.append([NoOpRecord()])
    log.roll()
    log.append([NoOpRecord()])
    beheaded = LogWriter(other, "a")
    beheaded.segment.unlink()
    shutil.copy(log.segment, beheaded.directory)
    return [other]


def of_another_epoch(log: LogWriter, other: Path) -> list[Path]:
    """The same records at the same offsets, but a leader of another epoch wrote them."""
    return [copied(log, other, epoch=2)]


def of_other_records(log: LogWriter, other: Path) -> list[Path]:
    """The same epoch at the same offset, other records: no quorum has two such logs, but a founded one may."""
    return [copied(log, other, record=TopicRecord("else", TOPIC))]


def that_begins_behind_in_an_older_epoch(log: LogWriter, other: Path) -> list[Path]:
    """No batch is in both, but epochs never fall."""
    writer = LogWriter(other, "a")
    writer.segment.unlink()
    writer.offset, writer.epoch = log.offset, 0
    writer.roll()
    writer.append([NoOpRecord()])
    return [other]


def that_ends_before(log: LogWriter, other: Path) -> list[Path]:
    """As a copy of yesterday's."""
    writer = LogWriter(other, "a")
    writer.append([NoOpRecord()])
    return [other]


def of_another_cluster(log: LogWriter, other: Path) -> list[Path]:
    writer = LogWriter(other, "b")
    writer.append([NoOpRecord()])
    return [other]


def copied(log: LogWriter, path: Path, *, epoch: int = 1, record: Any = None) -> Path:
    writer = LogWriter(path, "a")
    writer.append([NoOpRecord()])
    writer.epoch = epoch
    writer.append([record or TopicRecord("t", TOPIC)])
    writer.append([NoOpRecord()])
    return path


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (with_gap, r"the log begins at offset 3, and the tables hold the offsets 0 to 1; add the segments from off"),
        (
            of_another_epoch,
            r"is another log than that of the tables: at offset 1 it has epoch 2, CRC \w{8}",
        ),
        (
            of_other_records,
            r"is another log than that of the tables: at offset 1 it has epoch 1, CRC \w{8}",
        ),
        (that_begins_behind_in_an_older_epoch, r"is another log than that of the tables: at offset 2 it has epoch 0"),
        (that_ends_before, r"the log ends before offset 1, and the tables hold the offsets 0 to 1; give the log that"),
        (of_another_cluster, r"is of cluster b, and the tables hold a; give a log of theirs, or .* with --mixed"),
    ],
)
def test_log_that_does_not_go_on_changes_nothing(
    tmp_path: Path, given: Callable[[LogWriter, Path], list[Path]], sentence: str
) -> None:
    log, out = LogWriter(tmp_path / "log", "a"), tmp_path / "out"
    log.append([NoOpRecord()])
    log.append([TopicRecord("t", TOPIC)])
    append_history([log.path], out)
    before = {path: Path(path).read_bytes() for path in files_under(str(out)) if "_lock" not in path}
    paths = given(log, tmp_path / "other")

    with pytest.raises(InputError, match=rf"^{tmp_path}/other/.*: {sentence}"):
        append_history(paths, out)
    assert {path: Path(path).read_bytes() for path in files_under(str(out)) if "_lock" not in path} == before
    append_history([log.path], out)


def test_tables_that_cannot_be_gone_on_with_are_refused(tmp_path: Path) -> None:
    """Something else in the directory, tables without notes, and those that another run holds."""
    log, out = LogWriter(tmp_path / "log", "a"), tmp_path / "out"
    log.append([TopicRecord("t", TOPIC)])
    out.mkdir()
    (out / "mine").touch()
    with pytest.raises(NotAppendable, match=rf"^{out}: holds no Delta table partition_versions, and only a history of"):
        append_history([log.path], out)
    assert [path.name for path in out.iterdir()] == ["mine"]
    shutil.rmtree(out)

    append_history([log.path], out)
    with AppendedTables(out), pytest.raises(NotAppendable, match=rf"^{out}: another run is appending to it; wait"):
        append_history([log.path], out)
    manifest = json.loads((out / "manifest.json").read_text())
    del manifest["clusters"][0]["resume"]
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(NotAppendable, match=rf"^{out}: the tables were not made to be continued; make them with"):
        append_history([log.path], out)
    (out / "manifest.json").write_text("{")
    with pytest.raises(NotAppendable, match=rf"^{out}/manifest.json: does not tell what the tables hold"):
        append_history([log.path], out)


def test_what_is_not_committed_waits(tmp_path: Path) -> None:
    """It may be truncated, and others come in its place: the tables must not hold it before."""
    log, out = LogWriter(tmp_path / "log", "a"), tmp_path / "parts"
    log.append([TopicRecord("t", TOPIC), PartitionRecord(0, TOPIC, (1,), (1,), leader=1)])
    committed = log.segment.read_bytes()
    log.append([PartitionChangeRecord(0, TOPIC, leader=-1)])
    log.mark(2)
    append_history([log.path], out)

    log.segment.write_bytes(committed)
    log.offset, log.epoch = 2, 2
    log.append([PartitionChangeRecord(0, TOPIC, leader=7)])
    log.mark(3)
    append_history([log.path], out)

    append_history([log.path], tmp_path / "whole")
    require_same(out, tmp_path / "whole")
    assert delta_tables(out)["partition_versions"]["leader"].to_pylist() == [1, 7]
