"""Files of Kafka's tools: which partitions, and where they are to go. Read with limits, and refused as wrong usage."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

import typer
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorate.controller.protocol.problems import problem_of
from quorate.controller.protocol.types import BrokerIdField, PartitionIdField, Text
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX, RECORDS_PER_OPERATION_MAX

#: 10,000 partitions with 64 replicas each fit.
_FILE_BYTES_MAX: Final = 16 * 1024 * 1024


class _Form(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PlannedPartition(_Form):
    """A partition and the replicas it is to have."""

    topic: Text
    partition: PartitionIdField
    replicas: Annotated[list[BrokerIdField], Field(min_length=1, max_length=PARTITION_SLOTS_MAX)]
    #: Moves between the directories of one broker are its own: no other can be asked for.
    log_dirs: Annotated[list[Literal["any"]], Field(max_length=PARTITION_SLOTS_MAX)] | None = None

    @classmethod
    def of(cls, topic: str, partition: int, replicas: list[int]) -> PlannedPartition:
        """As Kafka's tool writes it."""
        directories: list[Literal["any"]] = ["any"] * len(replicas)
        return cls(topic=topic, partition=partition, replicas=replicas, log_dirs=directories)


class ReassignmentFile(_Form):
    """The file that kafka-reassign-partitions takes and gives."""

    version: Literal[1] = 1
    partitions: Annotated[list[PlannedPartition], Field(min_length=1, max_length=RECORDS_PER_OPERATION_MAX)]


class NamedTopic(_Form):
    """A topic by name."""

    topic: Text


class TopicsFile(_Form):
    """Topics that are to move, as kafka-reassign-partitions takes them."""

    version: Literal[1] = 1
    topics: Annotated[list[NamedTopic], Field(min_length=1, max_length=RECORDS_PER_OPERATION_MAX)]


class ElectedPartition(_Form):
    """A partition by name."""

    topic: Text
    partition: PartitionIdField


class ElectionFile(_Form):
    """Partitions to elect in, as kafka-leader-election takes them."""

    version: Literal[1] = 1
    partitions: Annotated[list[ElectedPartition], Field(min_length=1, max_length=RECORDS_PER_OPERATION_MAX)]


F = TypeVar("F", ReassignmentFile, TopicsFile, ElectionFile)


def read_json(path: Path, form: type[F]) -> F:
    """The contents of a file; of standard input where it is called `-`.

    Raises:
        typer.BadParameter: it cannot be read, is too large, is not of this form, or names a partition twice.
    """
    return parse_json(path, read_bytes(path), form)


def read_bytes(path: Path, bytes_max: int = _FILE_BYTES_MAX) -> bytes:
    """All of a file; a byte more than ``bytes_max`` of one that is larger. Of standard input where it is called `-`.

    Raises:
        typer.BadParameter: it cannot be read.
    """
    try:
        if str(path) == "-":
            return sys.stdin.buffer.read(bytes_max + 1)
        with path.open("rb") as file:
            return file.read(bytes_max + 1)
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be read: {error.strerror or error}") from None


def parse_json(path: Path, data: bytes, form: type[F]) -> F:
    """The contents of a file of these bytes; raises as ``read_json``."""
    if len(data) > _FILE_BYTES_MAX:
        raise typer.BadParameter(f"{path} has over {_FILE_BYTES_MAX} bytes: that is the most")
    try:
        read = form.model_validate_json(data)
    except ValidationError as error:
        raise typer.BadParameter(f"{path}: {problem_of(error)}") from None
    _refuse_doubles(path, read)
    return read


def _refuse_doubles(path: Path, read: ReassignmentFile | TopicsFile | ElectionFile) -> None:
    seen: set[tuple[str, int]] = set()
    for one in () if isinstance(read, TopicsFile) else read.partitions:
        if (one.topic, one.partition) in seen:
            raise typer.BadParameter(f"{path} names partition {one.topic}-{one.partition} more than once")
        seen.add((one.topic, one.partition))
