"""Setting a damaged log aside, so that its node may join again without a memory it cannot trust.

The election state goes with it: a directory without ``quorum-state`` belongs to a non-voter (see ``quorum_state``). It
goes first, so that no crash leaves a shortened log with the right to vote.
"""

from __future__ import annotations

from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME
from quorate.metadata_log.disk import DAMAGED_SUFFIX, Disk
from quorate.metadata_log.log.recovery_verdict import Damage
from quorate.metadata_log.segments.mark import MARK_NAME
from quorate.metadata_log.segments.segment_files import list_segments, segment_name


def set_aside(disk: Disk, directory: str, damage: Damage) -> list[str]:
    """Rename what cannot be trusted to ``*.damaged`` and return the new names; nothing is deleted. Blocking.

    The log opens again with what lies before the first bad segment, or empty. The node is then a non-voter until it has
    caught up and writes a new election state. After a crash in between the log is still damaged, or sound already.

    Raises:
        OSError: the disk failed.
    """
    segments: list[int] = []
    if damage.first_bad_segment is not None:
        segments = [base for base in list_segments(disk, directory) if base >= damage.first_bad_segment]
    # Newest first: what stays is always a log without a gap. The mark last: until then the log counts as damaged.
    names = [QUORUM_STATE_NAME, *(segment_name(base) for base in reversed(segments)), MARK_NAME]
    return [_rename(disk, directory, name) for name in names if disk.exists(f"{directory}/{name}")]


def _rename(disk: Disk, directory: str, name: str) -> str:
    taken = set(disk.list_directory(directory))
    aside = name + DAMAGED_SUFFIX
    number = 1
    while aside in taken:
        number += 1
        aside = f"{name}{DAMAGED_SUFFIX}-{number}"
    disk.rename(f"{directory}/{name}", f"{directory}/{aside}")
    disk.sync_directory(directory)
    return aside
