"""Workers of the store that break one rule, named before what the program takes: RULE ID DIRECTORY CONTROLLERS."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from examples.sharded_kv.__main__ import play
from examples.sharded_kv.shard import Shard
from quorate.worker import ServiceReplicas

RULES = ("lease", "maximal-isr")


def break_rule(rule: str) -> None:
    """``lease``: a leader answers whatever has become of its session. ``maximal-isr``: it waits for nobody."""
    if rule == "lease":
        ServiceReplicas.has_session = lambda self, broker_id: True  # type: ignore[method-assign]
    elif rule == "maximal-isr":
        Shard._members = lambda self: frozenset({self._me})  # type: ignore[method-assign]
    else:
        raise ValueError(rule)


if __name__ == "__main__":
    break_rule(sys.argv[1])
    asyncio.run(play(int(sys.argv[2]), Path(sys.argv[3]), sys.argv[4].split(",")))
