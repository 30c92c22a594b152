"""The options of ``quorate-log``, checked. Spark hands all of them on as text, its own among them."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files.ranges import RANGE_BYTES
from quorate.pipeline.files.uris import local_path
from quorate.pipeline.source.schema import COLUMN_TYPES, CONTROL_TYPE_NAMES, DATA_TYPE_NAMES

_TYPE_NAMES: Final = frozenset(DATA_TYPE_NAMES.values()) | frozenset(CONTROL_TYPE_NAMES.values())

_KNOWN: Final = (
    "path", "paths", "startOffset", "endOffset", "types", "columns", "clusterId", "mixed", "checkpoints", "rangeBytes",
    "quarantine", "maxRecords", "uncommitted",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options that ``option(...)`` was called with.

    Attributes:
        paths: of any form that ``pipeline.files.inputs`` knows.
        start_offset: of the first record; the log must hold it. None = from where the log begins.
        end_offset: exclusive; None = to the end.
        types: names of record types, None = all. columns: names, None = all.
        cluster_id: of files beside which no ``meta.properties`` tells it.
        mixed: whether there may be several clusters. checkpoints: whether checkpoints are read, too.
        range_bytes: bytes of log in a task. quarantine: directory for what is damaged; None = damage is an error.
        max_records: of a micro-batch, about; None = all there are.
        uncommitted: whether a stream may read logs that do not tell what is committed.
    """

    paths: tuple[str, ...]
    start_offset: int | None = None
    end_offset: int | None = None
    types: frozenset[str] | None = None
    columns: tuple[str, ...] | None = None
    cluster_id: str | None = None
    mixed: bool = False
    checkpoints: bool = False
    range_bytes: int = RANGE_BYTES
    quarantine: str | None = None
    max_records: int | None = None
    uncommitted: bool = False


def parse_options(options: Mapping[str, str]) -> SourceOptions:
    """The options of a ``load``.

    Raises:
        BadSetting: an unknown option, or a value that is none.
    """
    given = {key.lower(): value for key, value in options.items()}
    unknown = given.keys() - {name.lower() for name in _KNOWN}
    if unknown:
        raise BadSetting(f"quorate-log has no option {min(unknown)!r}; it has {', '.join(_KNOWN)}")
    types = _names(given.get("types"), "types", _TYPE_NAMES)
    return SourceOptions(
        paths=_paths(given),
        start_offset=_number(given, "startOffset", 0),
        end_offset=_number(given, "endOffset", 0),
        types=None if types is None else frozenset(types),
        columns=_names(given.get("columns"), "columns", COLUMN_TYPES.keys()),
        cluster_id=given.get("clusterid"),
        mixed=_flag(given, "mixed"),
        checkpoints=_flag(given, "checkpoints"),
        range_bytes=_number(given, "rangeBytes", 1) or RANGE_BYTES,
        quarantine=_directory(given.get("quarantine")),
        max_records=_number(given, "maxRecords", 1),
        uncommitted=_flag(given, "uncommitted"),
    )


def _directory(text: str | None) -> str | None:
    return None if text is None else os.path.abspath(local_path(text))


def _paths(given: Mapping[str, str]) -> tuple[str, ...]:
    if "paths" in given:  # load([...]) makes JSON of several
        return tuple(json.loads(given["paths"]))
    return (given["path"],) if "path" in given else ()


def _names(text: str | None, option: str, known: Collection[str]) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        raise BadSetting(f"option {option}: {wrong[0] if wrong else text!r} is none of {', '.join(sorted(known))}")
    return names


def _number(given: Mapping[str, str], option: str, least: int) -> int | None:
    text = given.get(option.lower())
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise BadSetting(f"option {option}: {text!r} is no whole number from {least} on")
    return int(text)


def _flag(given: Mapping[str, str], option: str) -> bool:
    text = given.get(option.lower(), "false").lower()
    if text not in ("true", "false"):
        raise BadSetting(f"option {option}: {text!r} is neither true nor false")
    return text == "true"
