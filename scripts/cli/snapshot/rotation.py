"""A directory of backups: one file for each run, dated, of one cluster, and nothing else in it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from quorate.metadata_log.checkpoints.saved_checkpoint import check_content, read_trailer
from quorate.metadata_log.disk import PART_SUFFIX, RealDisk
from quorate.metadata_log.errors import CorruptState, QuorateError
from quorate.scripts.cli.snapshot.saved_file import discard_part

_NAME: Final = re.compile(r"quorate-\d{8}T\d{6}Z\.checkpoint")
_FORM: Final = "quorate-%Y%m%dT%H%M%SZ.checkpoint"
#: What is in the way is named, not listed for pages.
_NAMED_MAX: Final = 3


class ForeignFiles(QuorateError):
    """The directory is not one of backups of this cluster alone. Nothing was written, and nothing removed."""


@dataclass(frozen=True, slots=True)
class Backups:
    """The backups that are there, oldest first by their names."""

    whole: tuple[Path, ...]
    #: Why a file that has a backup's name is none: a sentence each. They do not count, and are left alone.
    damaged: tuple[str, ...]
    #: What runs that were cut short have left, or others write now.
    parts: tuple[Path, ...]
    #: The cluster that they were saved from; None: there is none yet.
    cluster_id: str | None


def name_at(now: float) -> str:
    """The name of a backup of this moment, in seconds since 1970. Names have the order of time."""
    return datetime.fromtimestamp(now, UTC).strftime(_FORM)


def look(directory: Path) -> Backups:
    """The backups in a directory.

    Raises:
        ForeignFiles: something else is in it, or backups of several clusters are. OSError: it cannot be read.
    """
    names = sorted(path.name for path in directory.iterdir())
    strange = [name for name in names if not _NAME.fullmatch(name.removesuffix(PART_SUFFIX))]
    if strange:
        more = f" and {len(strange) - _NAMED_MAX} more" if len(strange) > _NAMED_MAX else ""
        raise ForeignFiles(
            f"{directory} has {', '.join(strange[:_NAMED_MAX])}{more} in it: old backups are removed there, so it must"
            " hold nothing else; choose a directory of their own"
        )
    whole, damaged, clusters = [], [], set()
    for path in (directory / name for name in names if _NAME.fullmatch(name)):
        try:
            saved = read_trailer(str(path))
            if saved is not None:
                check_content(str(path), saved)
        except (CorruptState, OSError) as error:
            damaged.append(str(error))
            continue
        if saved is None:
            damaged.append(f"{path}: does not end as a backup does: it was cut short")
            continue
        whole.append(path)
        clusters.add(saved.cluster_id)
    if len(clusters) > 1:
        raise ForeignFiles(f"{directory} has backups of several clusters ({', '.join(sorted(clusters))}): part them")
    parts = tuple(directory / name for name in names if name.endswith(PART_SUFFIX))
    return Backups(tuple(whole), tuple(damaged), parts, next(iter(clusters), None))


def remove_oldest(backups: Backups, newest: Path, keep: int) -> list[Path]:
    """Remove the oldest until ``keep`` are left, ``newest`` among them, whatever the clock said when it was named.

    Raises:
        OSError: one cannot be removed.
    """
    for part in backups.parts:
        # One that is no file, or not this user's, is in nobody's way: the new backup is there, and the old ones go.
        with suppress(OSError):
            discard_part(part)
    others = backups.whole
    going = others[: max(len(others) - (keep - 1), 0)]
    for path in going:
        with suppress(FileNotFoundError):
            path.unlink()
    if going:
        RealDisk().sync_directory(str(newest.parent))
    return list(going)
