"""Which cluster `quorate up` runs, and what it refuses before anything is made or thrown away."""

from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from quorate.metadata_log.errors import StorageError
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME
from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cli.clusters.up_cluster import WantedCluster, find_or_make
from quorate.scripts.cluster.making import Ports, remove
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.scripts.cluster.ports import free_stretch
from quorate.scripts.terminal.command_line import run


@pytest.fixture(scope="module")
def base() -> int:
    return free_stretch(16)


@pytest.fixture
def taken(base: int) -> Iterator[int]:
    """The port of the first broker of a new cluster: the last kind that is looked at."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", base + 6))
        held.listen()
        yield base + 6


def silent(sentence: str) -> None:
    """Nobody listens."""


def files(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_cluster_that_is_there_goes_on_or_moves_to_other_ports(tmp_path: Path, base: int) -> None:
    wanted = WantedCluster(tmp_path / "var", base_port=base)
    made = find_or_make(wanted, silent)
    assert [one.quorum_port for one in made.controllers] == [base, base + 2, base + 4]
    assert find_or_make(replace(wanted, base_port=None), silent) == made
    said: list[str] = []
    moved = find_or_make(replace(wanted, base_port=base + 1), said.append)
    assert said == [f"cluster {made.cluster_id} in {tmp_path / 'var'} moves to the ports from {base + 1} on"]
    assert ClusterPlan.load(tmp_path / "var") == moved
    assert [one.http_port for one in moved.brokers] == [base + 7, base + 8, base + 9]
    assert moved.on_ports(Ports.from_base(base).take) == made, "nothing else has changed"


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ({"controllers": 3}, "--controllers is"),
        ({"is_insecure": True}, "--insecure is"),
        ({"brokers": "3", "source": Path("x")}, "--from and --brokers are"),
    ],
)
def test_option_for_a_new_cluster_is_refused_where_there_is_one(
    tmp_path: Path, base: int, option: dict[str, object], says: str
) -> None:
    wanted = WantedCluster(tmp_path, base_port=base)
    find_or_make(wanted, silent)
    with pytest.raises(ClusterError, match=f"already, and {says} for a new one"):
        find_or_make(replace(wanted, **option), silent)  # type: ignore[arg-type]


def test_damaged_plan_can_be_started_over_by_who_starts_clusters(tmp_path: Path, base: int) -> None:
    (tmp_path / "cluster.json").write_text("{")
    with pytest.raises(ClusterError, match=r"cannot be read \(.*\): start over with --fresh, or use another --dir$"):
        find_or_make(WantedCluster(tmp_path, base_port=base), silent)


@pytest.mark.parametrize("captured", [None, "dynamic-small/m1/log"])
@pytest.mark.parametrize("is_insecure", [False, True])
def test_new_cluster_has_certificates_unless_somebody_says_otherwise(
    tmp_path: Path, kafka_data: Path, base: int, captured: str | None, *, is_insecure: bool
) -> None:
    source = None if captured is None else kafka_data / captured
    made = find_or_make(WantedCluster(tmp_path, source=source, base_port=base, is_insecure=is_insecure), silent)
    assert made.is_secured is not is_insecure
    assert (tmp_path / CERTIFICATES_NAME).exists() is not is_insecure


def test_taken_port_makes_moves_and_throws_away_nothing(
    tmp_path: Path, kafka_data: Path, base: int, taken: int
) -> None:
    new = WantedCluster(tmp_path / "new", base_port=base)
    twin = replace(new, source=kafka_data / "dynamic-small/m1/log", brokers="all")
    old = WantedCluster(tmp_path / "old", base_port=base + 7)
    find_or_make(old, silent)
    before = files(tmp_path)
    for wanted in (new, twin, replace(old, base_port=base), replace(old, fresh=True, base_port=base)):
        with pytest.raises(ClusterError, match=rf"port {taken} .* --base-port N takes others"):
            find_or_make(wanted, silent)
    assert files(tmp_path) == before
    assert not (tmp_path / "new").exists()


def test_fresh_start_throws_away_nothing_before_all_is_looked_at(tmp_path: Path, kafka_data: Path, base: int) -> None:
    directory = tmp_path / "var"
    wanted = WantedCluster(directory, base_port=base)
    find_or_make(wanted, silent)
    before = files(tmp_path)
    source = kafka_data / "dynamic-small/m1/log"
    for wrong, error in (
        (replace(wanted, source=tmp_path / "nowhere"), StorageError),
        (replace(wanted, source=directory / "controller-1"), ClusterError),
        (replace(wanted, source=source, brokers="some"), ClusterError),
        (replace(wanted, source=source, controllers=5), ClusterError),
        (replace(wanted, brokers="101"), ClusterError),
    ):
        with pytest.raises(error):
            find_or_make(replace(wrong, fresh=True), silent)
        assert files(tmp_path) == before
    said: list[str] = []
    find_or_make(replace(wanted, fresh=True, brokers="1"), said.append)
    assert said[0] == f"--fresh: throwing away what is in {directory}"


@pytest.mark.parametrize("fresh", [False, True])
def test_copies_of_controllers_are_not_thrown_away(tmp_path: Path, base: int, *, fresh: bool) -> None:
    """What is kept of a cluster looks like one, but for its plan."""
    find_or_make(WantedCluster(tmp_path / "var", base_port=base), silent)
    for number in (1, 2, 3):
        shutil.copytree(tmp_path / "var" / f"controller-{number}", tmp_path / "kept" / f"controller-{number}")
    before = files(tmp_path)
    with pytest.raises(ClusterError, match=r"they may be copies of another cluster's; remove them yourself, or use"):
        find_or_make(WantedCluster(tmp_path / "kept", base_port=base, fresh=fresh), silent)
    assert files(tmp_path) == before


def test_cluster_that_is_half_thrown_away_is_no_obstacle(
    tmp_path: Path, base: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = WantedCluster(tmp_path, base_port=base)
    find_or_make(wanted, silent)
    thrown: list[Path] = []

    def stopped(path: Path) -> None:
        if thrown:
            raise KeyboardInterrupt
        thrown.append(path)
        rmtree(path)

    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", stopped)
    with pytest.raises(KeyboardInterrupt):
        remove(tmp_path)
    monkeypatch.undo()
    assert thrown
    assert ClusterPlan.load(tmp_path) is None
    find_or_make(wanted, silent)
    assert (tmp_path / "cluster.json").is_file()
    assert not (tmp_path / ".making").exists()


@pytest.mark.parametrize("option", [["--dir", "x"], ["--fresh"], ["--restart"], ["--brokers", "all"]])
def test_tour_with_another_option_is_a_usage_error(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["up", "--demo", *option]
    with pytest.raises(SystemExit) as ended:
        run(make_app(arguments), arguments)
    assert ended.value.code == 2
    assert "the tour makes a cluster of its own" in capsys.readouterr().err
