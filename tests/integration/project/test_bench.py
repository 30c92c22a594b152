"""The benchmarks run, on sizes that measure nothing."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.architecture.source_tree import ROOT

TINY = ("--runs", "1", "--scale", "0.001")


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "quorate.scripts.benchmarks", *arguments]
    return subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=280)


def outcome(name: str, directory: Path) -> dict[str, Any]:
    done = bench(name, "--json", "--dir", str(directory), *TINY)
    assert done.returncode == 0, done.stderr
    assert list(directory.iterdir()) == []
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(
    "name",
    [
        "commit",
        "append",
        "throughput",
        "broker-loss",
        "checkpoint",
        "create",
        "load",
        "restart",
        "failover",
        "decisions",
        "balance",
        "heartbeats",
        "single-create",
        "stopped-follower",
        "ten-million",
        "search",
        "large-image",
        "moves",
        "digest-watch",
        "audit",
        "authorizer",
    ],
)
def test_bench_runs_says_its_method_and_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    document = outcome(name, tmp_path)

    [benchmark] = document["benchmarks"]
    assert benchmark["name"] == name
    assert len(benchmark["method"]) > 50
    assert any(figure["targets"] for figure in benchmark["figures"])
    assert document["machine"]["fdatasync_ms"] > 0


def test_overload_is_answered_with_success_or_when_to_come_again_and_nothing_else_suffers(tmp_path: Path) -> None:
    """Hundreds at once on the active controller, and on a standby, which has more of them than it passes on."""
    done = bench("overload", "--json", "--dir", str(tmp_path), "--runs", "1", "--scale", "0.2")
    assert done.returncode == 0, done.stderr

    [benchmark] = json.loads(done.stdout)["benchmarks"]
    samples: dict[str, list[float]] = {}
    for figure in benchmark["figures"]:
        samples.setdefault(figure["name"].rpartition(": ")[2], []).append(figure["samples"][0])
    answered = zip(samples["carried out (200)"], samples["... to come again (429)"], strict=True)
    assert [sum(counts) for counts in answered] == [600, 600, 1_200], done.stderr
    assert min(samples["carried out (200)"]) >= 64
    for harm in ("answered otherwise, or not", "a controller called absent", "elections", "brokers fenced"):
        assert samples[f"... {harm}"] == [0, 0, 0], (harm, done.stderr)


def test_bench_without_a_target_says_what_it_found(tmp_path: Path) -> None:
    [benchmark] = outcome("fencing", tmp_path)["benchmarks"]

    assert {figure["name"] for figure in benchmark["figures"]} >= {"all slices", "longest slice", "partition changes"}


def test_commands_are_each_timed_and_their_targets_are_those_that_operators_were_promised(tmp_path: Path) -> None:
    [benchmark] = outcome("commands", tmp_path)["benchmarks"]

    bounds = {figure["name"]: [one["at_most"] for one in figure["targets"]] for figure in benchmark["figures"]}
    assert bounds == {
        "incidents": [2.0],
        "timeline": [2.0],
        "history of 10 minutes, with checkpoints": [2.0],
        "history of 10 minutes, without": [],
        "--version": [],
        "status": [1.0],
        "explain": [1.0],
        "completion of a topic's name": [0.3],
    }


def test_bench_prints_the_target_beside_the_figure(tmp_path: Path) -> None:
    done = bench("load", "--dir", str(tmp_path), *TINY)

    assert done.returncode == 0, done.stderr
    assert "≤ 1 s" in done.stdout
    assert "bare fdatasync" in done.stdout


def test_bench_of_an_unknown_name_says_which_there_are() -> None:
    done = bench("loud")

    assert done.returncode == 2
    assert "broker-loss" in done.stderr


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="there is no memory file system to refuse")
def test_bench_refuses_a_memory_file_system() -> None:
    done = bench("load", "--dir", "/dev/shm")

    assert done.returncode == 1
    assert "tmpfs" in done.stderr
