"""The end of the last run of this process's brokers, as the file ``.kafka_cleanshutdown`` tells a broker of Kafka.

A broker says when it registers whether the incarnation before left in good order, by the epoch that this one had. The
log tells it only of a broker that led partitions when it was stopped, and never that one was killed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from quorate.metadata_log.disk import RealDisk, read_file, replace_file
from quorate.metadata_log.errors import CorruptState, StorageError

#: Of a broker that was not told to leave, or did not get to it.
CRASHED: Final = -1
_VERSION: Final = 1


class LastRun:
    """A file that is written when brokers begin, and when they have left."""

    def __init__(self, path: Path | None) -> None:
        """``path``: None: nothing is known of the run before, and nothing will be of this one."""
        self._path = path
        self._epochs: dict[int, int] = {}

    def read(self) -> Mapping[int, int]:
        """By broker the epoch that it left under, or ``CRASHED``; without those that have never run.

        Raises:
            CorruptState: the file cannot be read, or is not what this class writes.
        """
        if self._path is not None:
            try:
                self._epochs = _decode(read_file(RealDisk(), str(self._path)), str(self._path))
            except FileNotFoundError:
                pass
            except OSError as error:
                raise CorruptState(str(self._path), str(error.strerror)) from error
        return dict(self._epochs)

    def begin(self, broker_ids: Iterable[int]) -> None:
        """These are about to register: until ``end`` says otherwise, they have crashed. Durable.

        Raises:
            StorageError: it could not be written.
        """
        self._write(self._epochs | dict.fromkeys(broker_ids, CRASHED))

    def end(self, broker_ids: Iterable[int], left: Mapping[int, int]) -> None:
        """All have ended, and these of them have left, under these epochs. Durable.

        One that left before it was registered (epoch -1) has not run: its last run is still the one before.

        Raises:
            StorageError: it could not be written.
        """
        unregistered = {id_ for id_, epoch in left.items() if epoch < 0}
        ran = {id_: left.get(id_, CRASHED) for id_ in broker_ids if id_ not in unregistered}
        self._write(self._epochs | ran)

    def _write(self, epochs: Mapping[int, int]) -> None:
        if self._path is None:
            return
        document: dict[str, Any] = {
            "version": _VERSION,
            "broker_epochs": {str(id_): epoch for id_, epoch in sorted(epochs.items())},
        }
        try:
            for _ in replace_file(RealDisk(), str(self._path.parent), self._path.name, json.dumps(document).encode()):
                pass
        except OSError as error:
            raise StorageError(f"{self._path} cannot be written: {error.strerror}") from error


def _decode(data: bytes, path: str) -> dict[int, int]:
    try:
        document: Any = json.loads(data)
        if document["version"] != _VERSION:
            raise CorruptState(path, f"version {document['version']}, not {_VERSION}")
        return {_number(id_): _number(epoch) for id_, epoch in document["broker_epochs"].items()}
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise CorruptState(path, f"it is not how the last run of brokers ended: {error!r}") from error


def _number(value: str | int) -> int:
    number = int(value)
    if isinstance(value, float | bool) or not CRASHED <= number < 2**63:
        raise ValueError(f"{value!r} is no id or epoch")
    return number
