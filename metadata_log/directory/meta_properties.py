"""``meta.properties``: whose directory this is. Kafka's file (``MetaProperties``), and three keys of ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from quorate.metadata_log.errors import CorruptState, InvalidId
from quorate.metadata_log.ids import ZERO_UUID, Uuid, uuid_from_text, uuid_text

META_PROPERTIES_NAME: Final = "meta.properties"
_VERSION: Final = "1"
_NUMBER_MAX: Final = (1 << 31) - 1
_SOURCE_CLUSTER_KEY: Final = "quorate.source.cluster.id"
_GENERATION_KEY: Final = "quorate.quorum.generation"
_REPLACES_KEY: Final = "quorate.directory.replaces"
_LINE: Final = re.compile(r"\s*+((?:[^=:\s\\]|\\.)+)\s*+[=:]?\s*+(.*)", re.DOTALL)
_ESCAPE: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """The cluster, node and generation that a directory is formatted for."""

    cluster_id: str
    node_id: int
    #: Made when the directory was formatted, so that a wiped one is another. Zero when unknown: before Kafka 3.7.
    directory_id: Uuid
    #: Cluster whose metadata this one was made from, for a rehearsal; None for a cluster of its own.
    source_cluster_id: str | None = None
    #: The epoch above which the quorum was rebuilt, after a majority of its voters was lost; 0: it never was.
    generation: int = 0
    #: Directory that the settings name and that this one was made in place of, after that was lost. Zero: none.
    replaces: Uuid = ZERO_UUID


def encode_meta_properties(meta: MetaProperties) -> bytes:
    """The file's bytes."""
    lines = [f"node.id={meta.node_id}", f"directory.id={uuid_text(meta.directory_id)}", f"version={_VERSION}"]
    lines.append(f"cluster.id={meta.cluster_id}")
    if meta.source_cluster_id is not None:
        lines.append(f"{_SOURCE_CLUSTER_KEY}={meta.source_cluster_id}")
    if meta.generation:
        lines.append(f"{_GENERATION_KEY}={meta.generation}")
    if meta.replaces != ZERO_UUID:
        lines.append(f"{_REPLACES_KEY}={uuid_text(meta.replaces)}")
    return "".join(f"{line}\n" for line in lines).encode()


def decode_meta_properties(data: bytes, path: str) -> MetaProperties:
    """The properties in a file of ours or Kafka's.

    Raises:
        CorruptState: a key is missing, or a value is not what it must be.
    """
    try:
        found = _parse(data.decode())
    except UnicodeDecodeError as error:
        raise CorruptState(path, f"no text: {error}") from error
    version = _required(found, "version", path)
    if version != _VERSION:
        raise CorruptState(path, f"version {version}; only {_VERSION} (KRaft) is known")
    node_id = _number("node.id", _required(found, "node.id", path), path)
    generation = _number(_GENERATION_KEY, found.get(_GENERATION_KEY, "0"), path)
    directory_id = _uuid(found, "directory.id", path)
    replaces = _uuid(found, _REPLACES_KEY, path)
    cluster_id = _required(found, "cluster.id", path)
    return MetaProperties(cluster_id, node_id, directory_id, found.get(_SOURCE_CLUSTER_KEY), generation, replaces)


def _uuid(found: dict[str, str], key: str, path: str) -> Uuid:
    """Zero where the file has none."""
    text = found.get(key)
    try:
        return ZERO_UUID if text is None else uuid_from_text(text)
    except InvalidId as error:
        raise CorruptState(path, f"{key}: {error}") from error


def _required(found: dict[str, str], key: str, path: str) -> str:
    value = found.get(key)
    if not value:
        raise CorruptState(path, f"{key} is missing")
    return value


def _number(key: str, value: str, path: str) -> int:
    if not value.isascii() or not value.isdigit() or int(value) > _NUMBER_MAX:
        raise CorruptState(path, f"{key} is {value!r}, not a number from 0 to {_NUMBER_MAX}")
    return int(value)


def _parse(text: str) -> dict[str, str]:
    """Java's properties format, as far as these files use it: comments, ``key=value``, backslash escapes."""
    found = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match and not line.lstrip().startswith(("#", "!")):
            key, value = (_ESCAPE.sub(r"\1", part) for part in match.groups())
            found[key] = value
    return found
