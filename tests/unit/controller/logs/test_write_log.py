"""The account that a process keeps: reads are in it where its settings ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from quorate.controller.decisions.origin import Origin
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.logs.write_log import keep_account
from quorate.metadata_log.audit.read_lines import read_reads


class _Deciding:
    """What an account needs of a controller."""

    epoch = 1
    on_decided = None


@pytest.mark.parametrize("has_reads", [True, False])
def test_reads_are_written_down_where_they_are_wanted(tmp_path: Path, has_reads: bool) -> None:
    account = keep_account(tmp_path, cast("QuorumController", _Deciding()), is_logged=False, has_reads=has_reads)
    account.reads.note("GET", "/v1/users", Origin("User:ana", "10.0.0.1", "r1"))
    account.close()
    assert [line.principal for line in read_reads(tmp_path, 10)] == (["User:ana"] if has_reads else [])
