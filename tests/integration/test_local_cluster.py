"""`scripts/up` with real processes: start, go on, twins, taken ports, Ctrl-C; and the tour."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from metadata_log.ids import uuid_text
from scripts.cluster.plan import ClusterPlan
from scripts.cluster.ports import free_stretch
from snapshots.loading import load_image
from tests.waiting import eventually_sync

READY_S = 120.0
STOP_S = 60.0


def command(*arguments: str) -> list[str]:
    """The CLI in a process of its own."""
    return [sys.executable, "-m", "scripts.cli", *arguments]


@contextmanager
def running_up(directory: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`quorate up`, stopped by SIGINT at the end, as by Ctrl-C."""
    process = subprocess.Popen(
        command("up", "--dir", str(directory), *arguments), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=STOP_S)
        print(said, logs(directory))


def logs(directory: Path) -> str:
    """What a failing test needs to be understood."""
    return "\n".join(f"== {p.name}\n{p.read_text()[-3000:]}" for p in sorted(directory.glob("logs/*.log")))


def get(url: str) -> Any:
    """JSON of a URL; None while nobody serves it."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)
    except OSError:
        return None


def ready_status(directory: Path, brokers: int, controller: int = 0) -> dict[str, Any]:
    """What one of the controllers says once it knows an active controller and so many active brokers."""

    def look() -> dict[str, Any]:
        plan = ClusterPlan.load(directory)
        status = {} if plan is None else get(f"{plan.controller_urls[controller]}/v1/status") or {}
        if not status or status["quorum"]["active_id"] is None:
            return {}
        active = [b for b in status["brokers"] if b["state"] == "active"]
        return status if len(active) >= brokers else {}

    return eventually_sync(look, f"{brokers} active brokers", READY_S)


def base_port() -> str:
    """First of a stretch of free ports, enough for every cluster here."""
    return str(free_stretch(16))


@pytest.mark.timeout(300)
def test_cluster_started_again_goes_on_where_it_was(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    with running_up(directory, "--base-port", base_port(), "--brokers", "2"):
        ready_status(directory, 2, controller=1)
        plan = ClusterPlan.load(directory)
        assert plan is not None
        body = json.dumps({"topics": [{"name": "kept", "num_partitions": 4, "replication_factor": 2}]}).encode()
        request = urllib.request.Request(
            f"{plan.controller_urls[1]}/v1/topics", data=body, headers={"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=20) as answer:
            assert json.load(answer)["topics"][0]["error_code"] == 0
    with running_up(directory) as second:
        status = ready_status(directory, 2)
        assert status["cluster_id"] == plan.cluster_id
        assert status["topics"] == 1
        assert status["partitions"]["total"] == 4
    assert second.returncode == 0


@pytest.mark.timeout(300)
def test_twin_without_brokers_shows_the_imported_state_and_fences_nobody(tmp_path: Path, kafka_data: Path) -> None:
    directory = tmp_path / "twin"
    source = kafka_data / "dynamic-small/m1/log"
    expected = json.loads((kafka_data / "dynamic-small/m1/expected.json").read_text())
    with running_up(directory, "--base-port", base_port(), "--from", str(source), "--brokers", "none"):
        status = ready_status(directory, 1)
        fenced = {b["id"] for b in status["brokers"] if b["state"] == "fenced"}
        assert fenced == {b["id"] for b in expected["brokers"] if b["fenced"]}
        assert status["topics"] == len(expected["topics"])
        assert status["cluster_id"] != expected["cluster_id"]


@pytest.mark.timeout(300)
def test_twin_started_again_has_its_brokers_back_in_order(tmp_path: Path, kafka_data: Path) -> None:
    """The source's broker 12 had crashed; here both are stopped as Ctrl-C stops them, and nothing is lost."""
    directory = tmp_path / "twin"
    source = kafka_data / "dynamic-small/m1/log"
    with running_up(directory, "--base-port", base_port(), "--from", str(source), "--brokers", "all") as first:
        said_until(first, "ready")
        before = ready_status(directory, 2)
    assert first.returncode == 0
    with running_up(directory) as second:
        said = said_until(second, "ready")
        after = ready_status(directory, 2)
    assert second.returncode == 0
    assert "led again by eligible replicas" in said
    assert (after["elections"]["last_known"], after["elections"]["unclean"]) == (0, 0)
    incarnations = [{b["id"]: b["incarnation_id"] for b in status["brokers"]} for status in (before, after)]
    imported = {b.id: uuid_text(b.incarnation_id) for b in load_image(source).cluster.brokers.values()}
    assert incarnations[0][11] == imported[11], "it was alive and goes on"
    assert incarnations[0][12] != imported[12]
    assert not set(incarnations[0].values()) & set(incarnations[1].values())


def said_until(process: subprocess.Popen[str], word: str) -> str:
    """What it says up to a line with a word in it, or to its end."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if word in line:
            break
    return said


@pytest.mark.timeout(300)
def test_controller_without_its_directory_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    with running_up(directory, "--base-port", base_port(), "--brokers", "1") as first:
        said_until(first, "ready")
    assert first.returncode == 0
    shutil.rmtree(directory / "controller-2")
    with running_up(directory) as second:
        said = said_until(second, "ready")
        assert "quorate: controller-2 ended with exit code 1: " in said
        assert "controller-2: does not exist" in said
        assert "quorate recover rejoin" in said
        assert "ready without controller 2: " in said
        ready_status(directory, 1)
    assert second.returncode == 0
    shutil.rmtree(directory / "controller-3")
    begun = time.monotonic()
    with running_up(directory) as third:
        said = said_until(third, "no majority")
        assert third.wait(STOP_S) == 1
    assert "controller-2 ended with exit code 1: " in said
    assert "controller-3 ended with exit code 1: " in said
    assert "1 of 3 controllers are left, which is no majority" in said
    assert time.monotonic() - begun < READY_S / 2


def test_taken_port_is_one_sentence_and_changes_nothing(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        directory = tmp_path / "var"
        result = subprocess.run(
            command("up", "--dir", str(directory), "--base-port", str(port)),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert result.returncode == 1
    assert f"port {port}" in result.stderr
    assert "Traceback" not in result.stderr


def test_foreign_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for arguments in ((), ("--fresh",)):
        result = subprocess.run(
            command("up", "--dir", str(tmp_path), *arguments), capture_output=True, text=True, timeout=60, check=False
        )
        assert result.returncode == 1
        assert "thesis.tex" in result.stderr
        assert "Traceback" not in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.timeout(400)
def test_tour_of_a_captured_cluster_holds(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2])])}
    result = subprocess.run(
        command("up", "--demo"), cwd=tmp_path, capture_output=True, text=True, timeout=380, check=False, env=environment
    )
    assert result.returncode == 0, result.stdout + result.stderr + logs(next(iter(tmp_path.iterdir()), tmp_path))
    assert "All of it held" in result.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.timeout(300)
def test_child_that_dies_ends_the_cluster_in_one_sentence(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    with running_up(directory, "--base-port", base_port(), "--brokers", "1") as process:
        ready_status(directory, 1)
        (victim,) = [
            int(entry.name)
            for entry in Path("/proc").iterdir()
            if entry.name.isdigit() and str(directory / "controller-3.toml") in arguments_of(entry)
        ]
        os.kill(victim, signal.SIGKILL)
        _, said = process.communicate(timeout=STOP_S)
    assert process.returncode == 1
    assert "controller-3 ended with exit code -9" in said
    assert "Traceback" not in said


def arguments_of(process: Path) -> str:
    """A process's command line; empty where it has ended meanwhile."""
    try:
        return (process / "cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
