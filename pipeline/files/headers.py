"""Headers of the batches in a plain file, one after another; bodies are passed over.

Read, not mapped: a node may cut its log while we look at it, and a map would end the process then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from quorate.metadata_log.batches.batch import HEADER_BYTES, HeaderFields, checked_fields, header_fields
from quorate.metadata_log.errors import MalformedData
from quorate.pipeline.files import storage
from quorate.pipeline.files.archives import unreadable
from quorate.pipeline.files.inputs import InputFile

#: Read at once, so that small batches do not cost a call of the system each.
_BLOCK_BYTES: Final = 64 * 1024


def batch_headers(file: InputFile, position: int = 0, *, whole: bool = False) -> Iterator[tuple[int, HeaderFields]]:
    """Position and header of the batches from ``position`` on: up to the end of the file, or the first that is wrong.

    Args:
        whole: whether the batch must be there, with the right CRC; else its header is enough.

    Raises:
        StorageError: the file cannot be read.
    """
    try:
        with storage.open_file(file.place.full_path, buffering=_BLOCK_BYTES) as stream:
            size = min(file.size, stream.seek(0, os.SEEK_END))
            while position < size:
                stream.seek(position)
                try:
                    fields = header_fields(stream.read(HEADER_BYTES), 0)
                    if whole:
                        stream.seek(position)
                        checked_fields(stream.read(fields[1]), 0)
                except MalformedData:
                    return
                yield position, fields
                position += fields[1]
    except OSError as error:
        raise unreadable(file.place, error) from error
