"""The rehearsal of common writes: it makes what first uses need, and says so when it cannot."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.controller.engine.loop_scheduler import LoopScheduler
from quorate.controller.process import warm_up as module
from quorate.controller.process.warm_up import warm_up
from quorate.metadata_log.errors import ApiError, ErrorCode
from tests.unit.controller.manual_quorum import RecordingFaults

_ROOT = Path(__file__).parents[4]
# In a process of its own: in this one, other tests have long loaded everything.
_PROGRAM = """
import asyncio, sys
from quorate.controller.api.models import HttpModel
from quorate.controller.process.server import make_ready
from quorate.controller.protocol.types import Message
from quorate.metadata_log.records.codec_source import struct_reader, struct_writer

class Faults:
    def fault(self, what, error): raise error
    fatal = fault

def made(): return len(sys.modules), struct_reader.cache_info().currsize, struct_writer.cache_info().currsize

def below(model):
    return {model, *(each for one in model.__subclasses__() for each in below(one))}

def models(has):
    return {one.__name__ for one in below(HttpModel) | below(Message) if getattr(one, has)} - {"HttpModel", "Message"}

async def rehearse(): await make_ready(Faults())

asyncio.run(rehearse())
once = made()
assert models("__pydantic_complete__") == models("__name__"), "the first answers make their models"
from tests.unit.controller.small_cluster import SmallCluster
before = len(sys.modules)
cluster = SmallCluster()
cluster.create("topic", [0, 1], [1, 2])
cluster.heartbeat(0, want_fence=True)
after = made()
assert len(sys.modules) == before, "the first writes loaded modules"
assert after[1:] == once[1:], (once, after)
"""


def test_warm_up_first_writes_after_it_load_and_make_nothing() -> None:
    # Tests are no installed package.
    environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-c", _PROGRAM]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    assert done.returncode == 0, done.stderr


async def test_warm_up_refused_write_is_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    faults = RecordingFaults()
    made = module._registration
    monkeypatch.setattr(module, "_registration", lambda b: made(b).model_copy(update={"cluster_id": "another"}))

    await warm_up(LoopScheduler(faults), faults)

    ((what, error),) = faults.seen
    assert what == "rehearsal of common writes"
    assert isinstance(error, ApiError)
    assert error.code is ErrorCode.INCONSISTENT_CLUSTER_ID
