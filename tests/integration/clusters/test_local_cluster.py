"""`scripts/up` with real processes: start, go on, twins, taken ports, Ctrl-C; and the tour."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import termios
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from quorate.metadata_log.ids import uuid_text
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME, admin_tls
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.ports import free_stretch
from quorate.snapshots.checkpoints.loading import load_image
from tests.architecture.source_tree import ROOT
from tests.integration.commands import Ended, alone
from tests.waiting import eventually_sync

READY_S = 120.0
STOP_S = 60.0
#: The smallest pipe that Linux makes: a page.
PIPE_BYTES = os.sysconf("SC_PAGESIZE")


def command(*arguments: str) -> list[str]:
    """The CLI in a process of its own."""
    return [sys.executable, "-m", "quorate.scripts.cli", *arguments]


def ended(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command that has come to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=STOP_S, check=False)


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


def get(url: str, directory: Path) -> Any:
    """JSON of a URL, asked for as the administrator of a cluster; None while nobody serves it."""
    try:
        with urllib.request.urlopen(url, timeout=5, context=tls_of(directory)) as answer:
            return json.load(answer)
    except OSError:
        return None


def tls_of(directory: Path) -> ssl.SSLContext | None:
    """None: it was made with --insecure."""
    return admin_tls(directory)() if (directory / CERTIFICATES_NAME).exists() else None


def ready_status(directory: Path, brokers: int, controller: int = 0) -> dict[str, Any]:
    """What one of the controllers says once it knows an active controller and so many active brokers."""

    def look() -> dict[str, Any]:
        plan = ClusterPlan.load(directory)
        status = {} if plan is None else get(f"{plan.controller_urls[controller]}/v1/status", directory) or {}
        if not status or status["quorum"]["active_id"] is None:
            return {}
        active = [b for b in status["brokers"] if b["state"] == "active"]
        return status if len(active) >= brokers else {}

    return eventually_sync(look, f"{brokers} active brokers", READY_S)


def base_port() -> str:
    """First of a stretch of free ports, enough for every cluster here."""
    return str(free_stretch(16))


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
        with urllib.request.urlopen(request, timeout=20, context=tls_of(directory)) as answer:
            assert json.load(answer)["topics"][0]["error_code"] == 0
    other = base_port()
    with running_up(directory, "--base-port", other) as second:
        said_until(second, "ready")
        status = ready_status(directory, 2)
        assert status["cluster_id"] == plan.cluster_id
        assert status["topics"] == 1
        assert status["partitions"]["total"] == 4
        assert {urlsplit(voter["http"]).port for voter in status["quorum"]["voters"]} == ports_from(other, 1, 3, 5)
        refused = ended("up", "--dir", str(directory), "--fresh")
        assert refused.returncode == 1
        assert f"{directory} runs already, by process {second.pid}: " in refused.stderr
    assert second.returncode == 0
    voters = load_image(directory / "controller-1").kraft.voters
    assert voters is not None
    assert {voter.endpoints[0].port for voter in voters.voters} == ports_from(other, 0, 2, 4), "the log has moved, too"


def ports_from(base: str, *steps: int) -> set[int]:
    return {int(base) + step for step in steps}


def test_twin_without_brokers_shows_the_imported_state_and_fences_nobody(tmp_path: Path, kafka_data: Path) -> None:
    directory = tmp_path / "twin"
    source = kafka_data / "dynamic-small/m1/log"
    expected = json.loads((kafka_data / "dynamic-small/m1/expected.json").read_text())
    with running_up(
        directory, "--base-port", base_port(), "--from", str(source), "--brokers", "none", "--insecure"
    ) as up:
        said = said_until(up, "insecure")
        assert "it is insecure: without TLS and permissions every program on this machine" in said
        status = ready_status(directory, 1)
        fenced = {b["id"] for b in status["brokers"] if b["state"] == "fenced"}
        assert fenced == {b["id"] for b in expected["brokers"] if b["fenced"]}
        assert status["topics"] == len(expected["topics"])
        assert status["cluster_id"] != expected["cluster_id"]


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


def test_ctrl_c_while_a_twin_is_made_stops_it_and_leaves_nothing(tmp_path: Path, kafka_data: Path) -> None:
    directory, source = tmp_path / "twin", tmp_path / "source"
    shutil.copytree(kafka_data / "static/m2/log", source)
    checkpoint = max(source.glob("__cluster_metadata-0/*.checkpoint"))
    os.truncate(checkpoint, checkpoint.stat().st_size - 100)  # it is passed over, which is said while the twin is made
    first = f"quorate: reading {source}\n"
    with pipe_with_room_for(len(first)) as (said, end):
        process = subprocess.Popen(
            command("up", "--dir", str(directory), "--base-port", base_port(), "--from", str(source)), stderr=end
        )
        try:
            eventually_sync(lambda: waiting_bytes(said) == PIPE_BYTES, "the first sentence", STOP_S)
            process.send_signal(signal.SIGINT)  # it cannot come further than its second sentence
            sentences = [os.read(said, PIPE_BYTES).decode().strip("\0")]
            assert process.wait(STOP_S) == 0
            sentences.append(os.read(said, PIPE_BYTES).decode())
        finally:
            process.kill()
            process.wait()
    assert sentences[0] == first
    assert sentences[1].endswith("quorate: stopped before anything was started\n")
    assert "made cluster" not in sentences[1]
    assert list(tmp_path.iterdir()) == [source]


@contextmanager
def pipe_with_room_for(count: int) -> Iterator[tuple[int, int]]:
    """A pipe whose writer waits for its reader once it has written so many bytes; its two ends."""
    read, write = os.pipe()
    try:
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(read, False)
        os.write(write, bytes(PIPE_BYTES - count))
        yield read, write
    finally:
        os.close(read)
        os.close(write)


def waiting_bytes(pipe: int) -> int:
    """How much has been written to it and not been read."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), sys.byteorder)


def test_frozen_node_that_outlived_its_up_makes_room_for_the_next(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    with running_up(directory, "--base-port", base_port(), "--controllers", "1", "--brokers", "0") as first:
        said_until(first, "ready")
        frozen = process_id(directory, "controller-1")
        assert node(directory, "pause", "controller-1").code == 0
        first.kill()
        first.wait()
    assert "State:\tT (stopped)" in Path(f"/proc/{frozen}/status").read_text()
    with running_up(directory) as second:
        said = said_until(second, "ready")
        assert f"controller-1 (process {frozen}) had outlived whoever ran it, and has been ended" in said
        ready_status(directory, 0)
    assert second.returncode == 0
    assert not list(directory.glob("logs/*.pid"))


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
        result = ended("up", "--dir", str(directory), "--base-port", str(port))
    assert result.returncode == 1
    assert f"port {port}" in result.stderr
    assert "--base-port N" in result.stderr
    assert "Traceback" not in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_foreign_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    for arguments in ((), ("--fresh",)):
        result = ended("up", "--dir", str(tmp_path), *arguments)
        assert result.returncode == 1
        assert "thesis.tex" in result.stderr
        assert "Traceback" not in result.stderr
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


@pytest.mark.timeout(400)
def test_tour_of_a_captured_cluster_holds_in_an_installed_package(tmp_path: Path) -> None:
    """As where it was installed: with what the package brings, and nothing of the checkout."""
    site, place = tmp_path / "site", tmp_path / "place"
    # What links point to is copied, as where a package is built; and what is compiled of it, as where it is installed.
    shutil.copytree(ROOT / "src", site)
    place.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}
    result = subprocess.run(
        command("up", "--demo"), cwd=place, capture_output=True, text=True, timeout=380, check=False, env=environment
    )
    assert result.returncode == 0, result.stdout + result.stderr + logs(next(iter(place.iterdir()), place))
    assert "All of it held" in result.stdout
    assert list(place.iterdir()) == []


def node(directory: Path, *arguments: str) -> Ended:
    return asyncio.run(alone("node", *arguments, "--dir", str(directory)))


def process_id(directory: Path, name: str) -> int:
    """Of a process of the cluster, as the one that runs it says."""
    states = json.loads(node(directory, "list", "--json").out)
    found: int = next(state["pid"] for state in states if state["name"] == name)
    assert str(directory / f"{name}.toml") in arguments_of(found) or name.startswith("broker")
    return found


def arguments_of(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")


def test_cluster_lives_through_deaths_while_a_majority_of_controllers_is_left(tmp_path: Path) -> None:
    directory = tmp_path / "var"
    with running_up(directory, "--base-port", base_port(), "--brokers", "1") as process:
        said_until(process, "ready")
        os.kill(process_id(directory, "broker-11"), signal.SIGKILL)
        assert "quorate: broker-11 was ended by SIGKILL, the last line of its log: {" in said_until(
            process, "broker-11 "
        )
        listed = node(directory, "list")
        assert listed.code == 1
        assert "was ended by SIGKILL" in listed.out
        assert node(directory, "start", "broker-11").out == "broker-11 was started\n"
        frozen = process_id(directory, "controller-3")
        assert node(directory, "pause", "controller-3").code == 0
        eventually_sync(lambda: "State:\tT (stopped)" in Path(f"/proc/{frozen}/status").read_text(), "it is frozen")
        in_vain = node(directory, "start", "controller-1", "controller-3")
        assert (in_vain.code, in_vain.err) == (1, "quorate: controller-1 runs already\n")
        assert node(directory, "kill", "controller-3").out == "controller-3 was killed (SIGKILL)\n"
        assert not Path(f"/proc/{frozen}").exists()
        assert node(directory, "list").code == 1
        for victim in ("controller-2", "controller-1"):
            os.kill(process_id(directory, victim), signal.SIGKILL)
            assert f"{victim} was ended by SIGKILL" in said_until(process, f"{victim} ")
        said = said_until(process, "no majority")
        assert process.wait(STOP_S) == 1
    assert "0 of 3 controllers are left, which is no majority" in said
    assert node(directory, "list").code == 3
