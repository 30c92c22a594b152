"""`quorate topics deletions`: deleted topics of which brokers still have replicas."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from quorate.controller.protocol.deletions import DeletedTopic
from quorate.scripts.terminal.arguments import AsJson
from quorate.scripts.terminal.asking import ask
from quorate.scripts.terminal.connecting import Controllers, SecretFile
from quorate.scripts.terminal.output import reader_may_leave
from quorate.scripts.terminal.programs.documents import as_document
from quorate.scripts.terminal.programs.failures import UNREACHABLE, Failed
from quorate.scripts.terminal.tables import columns

#: Partitions that are named in a line; the others are counted.
_NAMED_MAX = 10


def deletions(as_json: AsJson = False, controllers: Controllers = None, secret_file: SecretFile = None) -> None:
    """Show deleted topics that brokers have not wholly deleted yet, and what they wait for.

    A deleted topic is gone from the metadata at once; its name may be used again. What brokers still have of it they
    say with their heartbeats, and only the active controller knows. A broker that is dead, or whose log directory
    failed, makes a deletion wait.

    Example: quorate topics deletions
    """
    described = ask(controllers, secret_file, lambda client: client.describe_topic_deletions())
    if not described.is_active:
        raise Failed("only the active controller knows of deletions, and none answers", name=UNREACHABLE)
    with reader_may_leave():
        if as_json:
            sys.stdout.write(as_document(described) + "\n")
            return
        if described.topics:
            rows = [("TOPIC", "BROKER", "STATE", "REPLICAS", "PARTITIONS", "WAITS FOR"), *_rows(described.topics)]
            sys.stdout.writelines(f"{line}\n" for line in columns(rows))
        else:
            sys.stdout.write("Nothing is known to be left of deleted topics.\n")
        if described.forgotten:
            sys.stdout.write(f"{described.forgotten} more topics were deleted than are kept in view.\n")


def _rows(topics: Sequence[DeletedTopic]) -> Iterator[tuple[str, ...]]:
    for topic in topics:
        for one in topic.replicas:
            count = len(one.partitions)
            named = ",".join(map(str, one.partitions[:_NAMED_MAX])) + (",..." if count > _NAMED_MAX else "")
            state = one.state.removeprefix("ReplicaDeletion").lower()
            yield topic.name, str(one.broker_id), state, str(count), named, one.waits_for or "-"
