"""Any one disk call fails, the process ends, and the next one finds what was promised. No handle is left open."""

import errno
import itertools

import pytest

from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from tests.log_support import ModelledLog, fail_at, run_until
from tests.unit.metadata_log.log.test_segment_log_crashes import WORKLOADS, Workload

WAYS_TO_END = [None, CrashPolicy.NOTHING, CrashPolicy.MIXED]


def end_process(modelled: ModelledLog, way: CrashPolicy | None) -> None:
    modelled.disk.on_call = lambda operation, path: None
    if way is None:
        modelled.disk.kill()
    else:
        modelled.disk.power_cut(way)


@pytest.mark.parametrize("way", WAYS_TO_END, ids=str)
@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.__name__))
def test_log_of_which_any_disk_call_failed_keeps_what_was_promised(workload: Workload, way: CrashPolicy | None) -> None:
    for call in itertools.count(1):
        modelled = ModelledLog(call)
        failed = fail_at(modelled, workload, call, errno.EIO if call % 2 else errno.ENOSPC)
        end_process(modelled, way)
        try:
            modelled.reopen()
            modelled.append(2)
            modelled.flush()
            end_process(modelled, CrashPolicy.NOTHING)
            modelled.reopen()
        except Exception as error:
            error.add_note(f"{failed} failed, disk call {call}, then {way}")
            raise
        if failed is None:
            return


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload.__name__))
def test_opening_a_log_when_any_disk_call_fails_leaves_it_openable_and_no_handle(workload: Workload) -> None:
    """Reading as well: what could not be read is not damaged."""
    failures = 0
    for crash in range(3, 40, 9):
        for call in itertools.count(1):
            modelled = ModelledLog(crash)
            run_until(modelled, workload, crash)
            end_process(modelled, CrashPolicy.MIXED)
            failed = fail_at(modelled, ModelledLog.reopen_only, call, errno.EIO)
            if failed is None:
                break
            failures += 1
            assert modelled.disk.open_handles == [], f"{failed} failed"
            end_process(modelled, CrashPolicy.NOTHING if call % 2 else None)
            try:
                modelled.reopen()
            except Exception as error:
                error.add_note(f"crash at disk call {crash}, {failed} failed at {call} of the recovery")
                raise
    assert failures > 50
