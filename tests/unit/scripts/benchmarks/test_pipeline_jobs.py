"""The measuring of the pipeline's jobs: what a tree of processes took, and where a log ends."""

import subprocess
import sys
from pathlib import Path

from quorate.scripts.benchmarks.pipeline_jobs import end_of, workers_of
from quorate.scripts.benchmarks.process_tree import TreeUse, watch_tree
from quorate.scripts.cli.pipeline_jobs.running import workers_line
from quorate.scripts.generated_history.making import GenerationPlan, make_history
from tests.waiting import eventually_sync

#: Starts a child that takes memory and processor time; both end when their input does.
PARENT = """
import subprocess, sys
child = [sys.executable, "-c", "data = bytearray(60_000_000); print(sum(range(10**7)), flush=True); input()"]
with subprocess.Popen(child, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
    process.stdout.readline()
    print("ready", flush=True)
    input()
    process.stdin.write(b"end\\n")
    process.stdin.close()
"""


def test_children_are_counted_with_what_they_took() -> None:
    command = [sys.executable, "-c", PARENT]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        with watch_tree(process.pid) as use:
            process.stdout.readline()
            eventually_sync(lambda: len(use.peak_mb) == 2 and max(use.peak_mb.values()) >= 60, "both were looked at")
        process.stdin.write("end\n")

    (parent, child) = sorted(use.peak_mb)
    assert use.peak_mb[child] >= 60
    assert use.peak_mb[parent] < use.peak_mb[child]


def test_processes_of_a_kind_are_added_up() -> None:
    use = TreeUse(
        kinds={1: "driver", 2: "Python worker", 3: "Python worker"},
        seconds={1: 1.0, 2: 2.0, 3: 3.5},
        peak_mb={1: 10, 2: 20, 3: 15},
    )

    assert use.by_kind() == {
        "driver": {"processes": 1, "processor_s": 1.0, "peak_mb": 10},
        "Python worker": {"processes": 2, "processor_s": 5.5, "peak_mb": 20},
    }


def test_end_of_a_log_is_that_of_its_last_segment(tmp_path: Path) -> None:
    make_history(GenerationPlan(1000, 1, segments=3), tmp_path / "made", lambda _: None)

    assert end_of(tmp_path / "made") == 1000


def test_what_a_job_says_of_its_workers_is_read_back() -> None:
    line = workers_line({"read": 3.54, "hand on": 0.0}, 1234)

    assert line == "Processor seconds of the workers: read 3.5, hand on 0.0; the largest worker took 1,234 MB."
    assert workers_of(f"Audit: passed.\n{line}\n") == {"read": 3.5, "hand on": 0.0}
    assert workers_of("Java 17\n") == {}
