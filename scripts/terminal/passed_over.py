"""Tells which checkpoints were passed over for not being whole, the same in every command."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from quorate.scripts.terminal.progress.bytes_read import reading_files
from quorate.snapshots.checkpoints.loading import load_image
from quorate.snapshots.checkpoints.moments import Moment
from quorate.snapshots.checkpoints.whole_checkpoints import PassedOver
from quorate.snapshots.image.image import MetadataImage


def say_passed_over(found: Iterable[PassedOver]) -> None:
    """For people, beside the output."""
    sys.stderr.writelines(f"quorate: {one}\n" for one in found)


def passed_over_documents(found: Iterable[PassedOver]) -> list[dict[str, Any]]:
    """For programs: path, end_offset, position (null where it is not at one place), reason."""
    return [asdict(one) for one in found]


def load_image_and_say(path: Path, at: Moment | None) -> tuple[MetadataImage, tuple[PassedOver, ...]]:
    """``load_image``, with what was passed over said beside the output.

    Raises:
        ImageNotAvailable, StorageError, ReplayError: as ``load_image``, whose sentence says it too.
    """
    found: list[PassedOver] = []
    with reading_files(path):
        image = load_image(path, at, found.append)
    say_passed_over(found)
    return image, tuple(found)
