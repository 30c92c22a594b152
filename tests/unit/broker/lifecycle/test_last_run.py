"""How the last run of brokers ended, as their next process reads it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.broker.lifecycle.last_run import CRASHED, LastRun
from quorate.metadata_log.errors import CorruptState, StorageError


def test_brokers_that_have_never_run_are_in_no_file(tmp_path: Path) -> None:
    assert LastRun(tmp_path / "none").read() == {}
    LastRun(None).begin([1])
    assert LastRun(None).read() == {}


def test_brokers_that_began_and_did_not_end_have_crashed(tmp_path: Path) -> None:
    path = tmp_path / "brokers"
    LastRun(path).begin([1, 2])
    assert LastRun(path).read() == {1: CRASHED, 2: CRASHED}


def test_brokers_that_left_are_known_by_the_epoch_that_they_left_under(tmp_path: Path) -> None:
    path = tmp_path / "brokers"
    run = LastRun(path)
    run.begin([1, 2])
    run.end([1, 2], {1: 40})
    assert LastRun(path).read() == {1: 40, 2: CRASHED}


def test_brokers_that_left_unregistered_are_as_before(tmp_path: Path) -> None:
    path = tmp_path / "brokers"
    first = LastRun(path)
    first.begin([1, 2])
    first.end([1, 2], {1: 40})
    second = LastRun(path)
    second.read()
    second.begin([1, 2, 3])
    second.end([1, 2, 3], {1: -1, 2: -1, 3: -1})
    assert LastRun(path).read() == {1: 40, 2: CRASHED}


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"version": 2, "broker_epochs": {}}', '{"version": 1}', '{"version": 1, "broker_epochs": {"1": -2}}',
     '{"version": 1, "broker_epochs": {"1": 4.5}}', '{"version": 1, "broker_epochs": {"x": 1}}', "{\udc80}"],
)  # fmt: skip
def test_file_that_is_none_is_refused_by_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "brokers"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(CorruptState, match="brokers: unreadable"):
        LastRun(path).read()


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="nowhere/brokers cannot be written: No such file or directory"):
        LastRun(tmp_path / "nowhere" / "brokers").begin([1])
