"""The log against a list of batches: random operations, crashes and power cuts, at any disk call."""

import errno
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.log.segment_log import LogConfig
from quorate.scripts.simulation.machine.memory_disk import CrashPolicy
from tests.default_parts import log_config
from tests.log_support import SMALL_SEGMENTS, ModelledLog, fail_at, run_until

POLICIES = st.sampled_from([None, *CrashPolicy])
#: Several pages to a segment, so that some of a write may come to the disk without others.
SEVERAL_PAGES = log_config(segment_bytes=40_000, resident_bytes=5_000)


class LogAgainstModel(RuleBasedStateMachine):
    """Every rule does the same to the log and to the list; the invariant compares them after each.

    As in Raft, (offset, epoch) names one history: what follows a truncation, a crash or a foreign checkpoint is of an
    epoch never used before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.modelled = ModelledLog()
        self.top_epoch = 0
        self.is_new_history = False

    @initialize(config=st.sampled_from([SMALL_SEGMENTS, SEVERAL_PAGES]))
    def configure(self, config: LogConfig) -> None:
        self.modelled = ModelledLog(config=config)

    def next_epoch(self, step: int) -> int:
        if self.is_new_history or step:
            self.top_epoch += 1
        self.is_new_history = False
        return self.top_epoch

    def ends(self) -> list[int]:
        """Offsets where a batch ends and the log is held, from its start on."""
        log = self.modelled.log
        return [log.start_offset, *(log.entry(index).end_offset for index in range(log.entry_count))]

    @rule(
        batches=st.lists(st.tuples(st.integers(1, 5), st.sampled_from([0, 0, 1_500, 9_000])), min_size=1, max_size=5),
        step=st.integers(0, 1),
    )
    def append(self, batches: list[tuple[int, int]], step: int) -> None:
        epoch = self.next_epoch(step)
        for count, size in batches:
            self.modelled.append(count, epoch, bytes([1 + epoch % 255]) * size)

    @rule()
    def flush(self) -> None:
        self.modelled.flush()

    @rule(data=st.data())
    def change_while_a_job_is_out(self, data: st.DataObject) -> None:
        def meanwhile() -> None:
            for change in data.draw(st.lists(st.sampled_from(["append", "truncate", "install"]), max_size=4)):
                if change == "append":
                    self.modelled.append(1, self.next_epoch(0))
                elif change == "truncate":
                    self.truncate(data)
                else:
                    self.install(data)

        self.modelled.flush_with(meanwhile)

    @rule(data=st.data())
    def truncate(self, data: st.DataObject) -> None:
        legal = [end for end in self.ends() if end >= self.modelled.log.commit]
        if legal:
            self.is_new_history = True
            self.modelled.truncate(data.draw(st.sampled_from(legal)))

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        self.modelled.commit(data.draw(st.sampled_from(self.ends())))

    @rule(data=st.data())
    def delete_prefix(self, data: st.DataObject) -> None:
        log = self.modelled.log
        legal = [end for end in self.ends() if log.start_offset < end <= log.commit]
        if legal:
            self.modelled.delete_prefix(data.draw(st.sampled_from(legal)))

    @rule(data=st.data())
    def install(self, data: st.DataObject) -> None:
        log = self.modelled.log
        end = data.draw(st.integers(log.commit + 1, log.end_offset + 5))
        epoch = log.epoch_at(end)
        if epoch is None or data.draw(st.booleans()):
            self.is_new_history = True
            epoch = self.next_epoch(1)
        self.modelled.install(CheckpointId(end, epoch))

    @rule(policy=POLICIES)
    def crash(self, policy: CrashPolicy | None) -> None:
        self.lose(policy)
        self.modelled.reopen()

    @precondition(lambda self: self.modelled.log.has_staged)
    @rule(call=st.integers(1, 30), policy=POLICIES, later_call=st.integers(1, 30), later_policy=POLICIES)
    def crash_in_a_flush_and_in_the_recovery(
        self, call: int, policy: CrashPolicy | None, later_call: int, later_policy: CrashPolicy | None
    ) -> None:
        if not run_until(self.modelled, ModelledLog.flush, call):
            self.modelled.disk.on_call = lambda operation, path: None
            return
        self.lose(policy)
        run_until(self.modelled, ModelledLog.reopen_only, later_call)
        self.lose(later_policy)
        self.modelled.reopen()

    @precondition(lambda self: self.modelled.log.has_staged)
    @rule(call=st.integers(1, 20), policy=POLICIES, later_call=st.integers(1, 40), later_policy=POLICIES)
    def fail_in_a_flush_and_in_the_recovery(
        self, call: int, policy: CrashPolicy | None, later_call: int, later_policy: CrashPolicy | None
    ) -> None:
        """A disk call that fails ends the process, in an orderly way or not."""
        failed = fail_at(self.modelled, ModelledLog.flush, call, errno.EIO)
        self.modelled.disk.on_call = lambda operation, path: None
        if failed is None:
            return
        self.lose(policy)
        fail_at(self.modelled, ModelledLog.reopen_only, later_call, errno.ENOSPC)
        self.lose(later_policy)
        self.modelled.reopen()

    def lose(self, policy: CrashPolicy | None) -> None:
        self.is_new_history = True
        if policy is None:
            self.modelled.disk.kill()
        else:
            self.modelled.disk.power_cut(policy)

    @invariant()
    def says_what_the_model_says(self) -> None:
        self.modelled.check_memory()


TestLogAgainstModel: Any = LogAgainstModel.TestCase
TestLogAgainstModel.settings = settings(max_examples=60, stateful_step_count=25)
