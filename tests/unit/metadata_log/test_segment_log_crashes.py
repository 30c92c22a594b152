"""Crashes between any two disk calls: what was promised is there, nothing has a gap, and nothing is made up."""

import itertools
from collections.abc import Callable

import pytest

from metadata_log.checkpoint_files import CheckpointId
from scripts.simulation.memory_disk import CrashPolicy
from tests.log_support import ModelledLog, crash_at_every_call, run_until

Workload = Callable[[ModelledLog], None]

POLICIES = [
    pytest.param(None, 1, id="killed"),
    pytest.param(CrashPolicy.NOTHING, 1, id="nothing-kept"),
    pytest.param(CrashPolicy.EVERYTHING, 1, id="everything-kept"),
    pytest.param(CrashPolicy.PREFIX, 3, id="prefix-kept"),
    pytest.param(CrashPolicy.TORN, 3, id="torn"),
    pytest.param(CrashPolicy.MIXED, 3, id="mixed"),
]


def append_and_roll(modelled: ModelledLog) -> None:
    for round_number in range(4):
        for count in (1, 3, 2):
            modelled.append(count)
        modelled.flush_with(modelled.append)
        modelled.commit(min(modelled.promised, 3 * round_number))
    modelled.flush()


def truncate_within_a_segment(modelled: ModelledLog) -> None:
    for _ in range(3):
        modelled.append(2, epoch=1)
    modelled.commit(2)
    modelled.flush()
    modelled.truncate(4)
    modelled.append(1, epoch=3)
    modelled.flush()
    modelled.append(4)
    modelled.flush()


def truncate_over_segments(modelled: ModelledLog) -> None:
    for _ in range(11):
        modelled.append(1, epoch=1)
    modelled.flush()
    modelled.append(1)
    modelled.flush_with(lambda: modelled.truncate(2))
    modelled.append(5, epoch=2)
    modelled.append(1)
    modelled.flush()
    modelled.truncate(0)
    modelled.append(7, epoch=4)
    modelled.flush()


def delete_a_prefix(modelled: ModelledLog) -> None:
    for _ in range(11):
        modelled.append(1, epoch=1)
    modelled.commit(10)
    modelled.flush()
    modelled.delete_prefix(6)
    modelled.append(1, epoch=2)
    modelled.flush()
    modelled.delete_prefix(10)
    modelled.append(2)
    modelled.flush()


def install_over_a_diverging_log(modelled: ModelledLog) -> None:
    for _ in range(9):
        modelled.append(1, epoch=1)
    modelled.commit(2)
    modelled.flush()
    modelled.append(1)
    modelled.flush_with(lambda: modelled.install(CheckpointId(5, 3)))
    modelled.append(2, epoch=3)
    modelled.flush()
    modelled.append(1, epoch=4)
    modelled.flush()


def install_beyond_the_end(modelled: ModelledLog) -> None:
    modelled.append(2, epoch=1)
    modelled.flush()
    modelled.install(CheckpointId(40, 2))
    modelled.append(2)
    modelled.flush()
    modelled.install(CheckpointId(42, 2))
    modelled.append(3, epoch=5)
    modelled.flush()


WORKLOADS = [
    append_and_roll,
    truncate_within_a_segment,
    truncate_over_segments,
    delete_a_prefix,
    install_over_a_diverging_log,
    install_beyond_the_end,
]


@pytest.mark.parametrize(("policy", "seeds"), POLICIES)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.__name__))
def test_log_after_a_crash_at_any_disk_call_keeps_what_was_promised(
    workload: Workload, policy: CrashPolicy | None, seeds: int
) -> None:
    for call, modelled in crash_at_every_call(workload, policy, range(seeds)):
        try:
            modelled.reopen()
            # What was recovered is durable, and goes on.
            modelled.append(2)
            modelled.flush()
            modelled.disk.power_cut(CrashPolicy.NOTHING)
            modelled.reopen()
        except Exception as error:
            error.add_note(f"crash at disk call {call}, files {modelled.disk.paths()}")
            raise


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.__name__))
def test_log_after_a_second_crash_while_it_recovers_keeps_what_was_promised(workload: Workload) -> None:
    for call in itertools.count(1, 4):
        for second in itertools.count(1):
            modelled = ModelledLog(call)
            if not run_until(modelled, workload, call):
                return
            modelled.disk.power_cut(CrashPolicy.MIXED)
            has_crashed = run_until(modelled, ModelledLog.reopen_only, second)
            modelled.disk.power_cut(CrashPolicy.MIXED)
            try:
                modelled.reopen()
            except Exception as error:
                error.add_note(f"crash at disk call {call}, and at {second} of the recovery")
                raise
            if not has_crashed:
                break
