"""The one thing that Kafka's controller writes and ours does not: the same change a second time.

When a broker registers after an unclean shutdown, Kafka looks for its partitions by ISR and then by ELR, on the same
state (``ReplicationControlManager.handleBrokerShutdown``). One that is found by both gets its change, which empties the
ELR, twice. The second changes nothing but the partition's epoch and every offset behind it, so a scenario ends there:
its later steps speak of epochs and offsets that our cluster does not have.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from quorate.scripts.conformance_runner.record_form import Form

_REGISTRATION: Final = "register_broker"


def without_repetition(op: Form, expected: Form) -> Form | None:
    """The step as it is with every such change written once; None where there is none.

    Args:
        expected: with its runs of changes in order of partition, so that equal ones stand side by side.
    """
    records = expected["records"]
    repeated = [again for once, again in pairwise(records) if once == again and _empties_elr(again)]
    if op["op"] != _REGISTRATION or not repeated:
        return None
    once = [record for at, record in enumerate(records) if not (record in repeated and records[at - 1] == record)]
    state = expected.get("state")
    return expected | {"records": once} | ({} if state is None else {"state": _earlier(state, repeated)})


def _empties_elr(record: Form) -> bool:
    return record["type"] == "PartitionChangeRecord" and record.get("elr") == []


def _earlier(state: Form, repeated: list[Form]) -> Form:
    """The state without what the repetitions added to it."""
    counts = [(record["topic_id"], record["partition"]) for record in repeated]
    topics = {
        name: topic
        | {
            "partitions": [
                partition
                | {"partition_epoch": partition["partition_epoch"] - counts.count((topic["topic_id"], number))}
                for number, partition in enumerate(topic["partitions"])
            ]
        }
        for name, topic in state["topics"].items()
    }
    return state | {"next_offset": state["next_offset"] - len(repeated), "topics": topics}
