"""``authorizer``: decisions by many ACLs, the price of one change of them and of all at once, and their memory."""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Final

from quorate.controller.access.acl_filters import OPERATION_IDS, PATTERN_TYPE_IDS, PERMISSION_IDS, RESOURCE_TYPE_IDS
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.metadata_log.records.records import AccessControlEntryRecord
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.workspace import Workspace
from quorate.snapshots.image.image_parts import AclsImage
from quorate.snapshots.maps.persistent_map import PersistentMap

_ACLS: Final = 100_000
#: One in so many has a prefix of its length; the others have whole names.
_PREFIXED_EVERY: Final = 4
_ACLS_PER_USER: Final = 50
_DECISIONS: Final = 20_000
_CHANGES: Final = 1_000
_HOST: Final = "10.0.0.1"
#: What a decision may take, so that it does not count beside the request that asks for it.
_DECISION_US: Final = FigureTarget(20.0)
_CHANGE_US: Final = FigureTarget(200.0)


def run(workspace: Workspace) -> BenchmarkOutcome:
    """Every figure once a run, of the same ACLs."""
    count = workspace.scaled(_ACLS, _ACLS_PER_USER)
    acls = AclsImage(PersistentMap({entry.id: entry for entry in map(_entry, range(count))}))
    built, decided, refused, changed, sizes = [list[float]() for _ in range(5)]
    for _ in range(workspace.runs):
        built.append(1e3 * _seconds(lambda: Authorizer().following(acls)))
        size, authorizer = _bytes_of(lambda: Authorizer().following(acls))
        sizes.append(size / count)
        decided.append(_decision_us(authorizer, count, _name))
        refused.append(_decision_us(authorizer, count, lambda number: f"another-{number}"))
        changed.append(_change_us(authorizer, acls, count))
    return BenchmarkOutcome(
        f"one process, no HTTP; {count:,} ACLs of topics, {_ACLS_PER_USER} a user, one in {_PREFIXED_EVERY} for a "
        f"prefix, one in ten a denial; {_DECISIONS:,} decisions one by one, the client and the topic another each "
        f"time; one more ACL, {_CHANGES:,} times",
        (
            Figure("decision, an ACL allows or denies", "µs", tuple(decided), (_DECISION_US,)),
            Figure("decision, no ACL is about it", "µs", tuple(refused), (_DECISION_US,)),
            Figure("decisions a second", "/s", tuple(1e6 / taken for taken in decided)),
            Figure("one ACL more", "µs", tuple(changed), (_CHANGE_US,)),
            Figure("all ACLs at once", "ms", tuple(built)),
            Figure("memory beside the image", "bytes an ACL", tuple(sizes)),
        ),
    )


def _user(number: int) -> str:
    return f"User:CN=service-{number // _ACLS_PER_USER},OU=services,O=example"


def _name(number: int) -> str:
    return f"team-{number % 100}.service-{number // _ACLS_PER_USER}.topic-{number}"


def _entry(number: int) -> AccessControlEntryRecord:
    name = _name(number)
    is_prefix = number % _PREFIXED_EVERY == 0
    return AccessControlEntryRecord(
        number.to_bytes(16, "big"),
        RESOURCE_TYPE_IDS["TOPIC"],
        name[: len(name) - 3] if is_prefix else name,
        PATTERN_TYPE_IDS["PREFIXED" if is_prefix else "LITERAL"],
        _user(number),
        "*" if number % 3 else _HOST,
        OPERATION_IDS["READ"],
        PERMISSION_IDS["ALLOW" if number % 10 else "DENY"],
    )


def _decision_us(authorizer: Authorizer, count: int, name: Callable[[int], str]) -> float:
    # Far from each other, so that nothing is in a processor's cache.
    numbers = [at * 7919 % count for at in range(_DECISIONS)]
    asked = [(_user(number), name(number)) for number in numbers]

    def decide() -> None:
        for principal, topic in asked:
            authorizer.authorize(principal, _HOST, "READ", "TOPIC", topic)

    return 1e6 * _seconds(decide) / _DECISIONS


def _change_us(authorizer: Authorizer, acls: AclsImage, count: int) -> float:
    more = [_entry(count + at) for at in range(_CHANGES)]
    images = []
    for entry in more:
        acls = AclsImage(acls.entries.put(entry.id, entry))
        images.append(acls)

    def follow() -> None:
        followed = authorizer
        for image in images:
            followed = followed.following(image)

    return 1e6 * _seconds(follow) / _CHANGES


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    begun = time.process_time()
    work()
    return time.process_time() - begun


def _bytes_of(make: Callable[[], Authorizer]) -> tuple[int, Authorizer]:
    gc.collect()
    tracemalloc.start()
    try:
        made = make()
        return tracemalloc.get_traced_memory()[0], made
    finally:
        tracemalloc.stop()
