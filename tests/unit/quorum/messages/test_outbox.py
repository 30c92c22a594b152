"""Each peer is spoken to in the version that it knows, also where one message goes to several."""

from __future__ import annotations

from quorate.quorum.messages.messages import Append, Commit
from quorate.quorum.messages.outbox import Outbox
from quorate.quorum.messages.wire import decode
from quorate.quorum.versions import NEWEST_VERSION, OLDEST_VERSION

OLD, NEW, UNKNOWN = 2, 3, 4
VERSIONS = {OLD: OLDEST_VERSION, NEW: NEWEST_VERSION, UNKNOWN: NEWEST_VERSION}


class Votes:
    """A vote state that is durable."""

    staged_generation = 0
    durable_generation = 0


def test_message_to_several_goes_to_each_in_its_own_version_or_not_at_all() -> None:
    sent: list[tuple[int, bytes]] = []
    outbox = Outbox(Votes(), lambda peer, channel, payload: sent.append((peer, payload)))  # type: ignore[arg-type]
    outbox.set_version(OLD, OLDEST_VERSION)
    outbox.set_version(NEW, NEWEST_VERSION)
    append, commit = Append(3, 7, 100, 2, 90, b"batches", ((1, 80), (2, 100)), is_vouched=True), Commit(3, 90)
    for message in (append, commit):
        for peer in (NEW, OLD, UNKNOWN):
            outbox.put(peer, message)
    outbox.flush()
    read = [(peer, decode(payload, VERSIONS[peer])) for peer, payload in sent]
    older = Append(3, 7, 100, 2, 90, b"batches", (), is_vouched=True)
    # What has no ``Commit`` learns of it with the next ``Append``.
    assert read == [(NEW, append), (OLD, older), (UNKNOWN, append), (NEW, commit), (UNKNOWN, commit)]
