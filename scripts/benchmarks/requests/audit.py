"""``audit``: what it costs to write down who asked, on the loop and beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from quorate.controller.access.acl_filters import OPERATION_IDS, PATTERN_TYPE_IDS, PERMISSION_IDS, RESOURCE_TYPE_IDS
from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.decisions.origin import Grounds, Origin
from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.logs.audit_log import WAITING_MAX, AuditLog
from quorate.metadata_log.audit.audit_lines import audit_files
from quorate.metadata_log.records.records import AccessControlEntryRecord
from quorate.scripts.benchmarks.figures import BenchmarkOutcome, Figure, FigureTarget
from quorate.scripts.benchmarks.protection import Safeguard
from quorate.scripts.benchmarks.workspace import Workspace, temporary_directory
from quorate.snapshots.image.image_parts import AclsImage
from quorate.snapshots.maps.persistent_map import PersistentMap

_WRITES: Final = WAITING_MAX // 2
_PRINCIPAL: Final = "User:ana"
_ADDRESS: Final = "10.0.0.1"
_TOPIC: Final = "orders"
_ORIGIN: Final = Origin(_PRINCIPAL, _ADDRESS, "6f1c2b7a90d3e845")
#: A tenth of what a small write may take where there are 10,000 a second.
_WRITE_US: Final = FigureTarget(10.0)


def run(workspace: Workspace) -> BenchmarkOutcome:
    """The same writes handed to nobody and to the log, one after the other in each run."""
    count = workspace.scaled(_WRITES, 1_000)
    noted: list[float] = []
    written: list[float] = []
    sizes: list[float] = []
    origin = _ORIGIN._replace(grounds=_grounds()) if Safeguard.ACLS in workspace.protection else _ORIGIN
    with temporary_directory(workspace.directory) as directory:
        log = AuditLog(directory, lambda: 7)
        for number in range(workspace.runs):
            first = number * count
            writes = [
                DecidedWrite("incremental_alter_configs", origin, offset, offset + 1, None)
                for offset in range(first, first + count)
            ]
            size = _bytes_in(directory)
            without = _handed(_nobody, writes)
            noted.append(_microseconds(_handed(log.note, writes) - without, count))
            begun = time.thread_time()
            log.page(first + count, first + count, 1)
            written.append(_microseconds(time.thread_time() - begun, count))
            sizes.append((_bytes_in(directory) - size) / count)
        log.start()
        log.close()
    return BenchmarkOutcome(
        f"one process, no HTTP, no log; {count:,} config changes that were decided, handed over one by one, to nobody "
        "and to the audit log in turn: the difference of the processor times is what the loop pays; then all of them "
        "written as its thread does twice a second; with ACLs each line says which one allowed it",
        (
            Figure("a write, in all", "µs", tuple(map(sum, zip(noted, written, strict=True))), (_WRITE_US,)),
            Figure("of it on the loop", "µs", tuple(noted)),
            Figure("of it on the thread", "µs", tuple(written)),
            Figure("size of a line", "bytes", tuple(sizes)),
        ),
    )


def _grounds() -> Grounds:
    """The note that a controller with an authorizer makes of a request that one ACL allows."""
    ids = (RESOURCE_TYPE_IDS["TOPIC"], _TOPIC, PATTERN_TYPE_IDS["LITERAL"], _PRINCIPAL, "*")
    entry = AccessControlEntryRecord(bytes(16), *ids, OPERATION_IDS["ALTER_CONFIGS"], PERMISSION_IDS["ALLOW"])
    authorizer = Authorizer().following(AclsImage(PersistentMap({entry.id: entry})))
    return Grounds(partial(authorizer.reason, _PRINCIPAL, _ADDRESS, "ALTER_CONFIGS", "TOPIC", _TOPIC))


def _bytes_in(directory: Path) -> int:
    return sum(file.stat().st_size for file in audit_files(directory))


def _nobody(write: DecidedWrite) -> None:
    """Do nothing: called where a controller has no audit log."""


def _handed(take: Callable[[DecidedWrite], None], writes: Sequence[DecidedWrite]) -> float:
    """Seconds of processor time."""
    begun = time.process_time()
    for write in writes:
        take(write)
    return time.process_time() - begun


def _microseconds(seconds: float, count: int) -> float:
    return 1e6 * seconds / count
