"""Reads a file's bytes from where they are, as a stream: on disk, in a gzip, or in a member of a zip or tar archive.

Nothing is unpacked to disk: a member is read from its first byte to its last, also by who wants a part of it.
A zip's member and a plain tar's are found at once. A compressed tar is read from its start by each task, which is
quadratic work: a large one is refused.
"""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import BinaryIO, Final, cast

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.files import storage

#: Positions in a segment are int32 in Kafka: no file of a log has more bytes, so what expands to more is none.
FILE_BYTES_MAX: Final = 2**31 - 1
#: Members of one archive: a year of segments of a large cluster has some thousands.
MEMBERS_MAX: Final = 100_000

#: Unpacked, of all files in a compressed tar: tasks of 32 MiB then unpack some 16 times as much together.
COMPRESSED_TAR_BYTES_MAX: Final = 1024**3

#: Of one long name, or of what is said of a file beside its name: it is read as a whole.
_TAR_HEADER_BYTES_MAX: Final = 1024**2
#: LZMA and bzip2 take what memory the archive asks for.
_ZIP_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)

_GZIP_BEGIN: Final = b"\x1f\x8b"
_PACKED_BLOCK_BYTES: Final = 256 * 1024
_SKIPPED_BYTES: Final = 1024 * 1024

_READ_ERRORS: Final = (
    OSError,
    EOFError,
    zlib.error,
    zipfile.BadZipFile,
    tarfile.TarError,
    NotImplementedError,  # a zip with a compression that is not known
    RuntimeError,  # a zip with a password
)


class Form(Enum):
    """The form in which a file on disk holds its content."""

    PLAIN = "plain"
    GZIP = "gzip"
    ZIP = "zip"
    TAR = "tar"


@dataclass(frozen=True, slots=True)
class FileLocation:
    """The location of a log file's bytes."""

    #: Of the file on disk, as it was given: that is how it is named.
    path: str
    form: Form = Form.PLAIN
    #: The name in the archive.
    member: str = ""
    #: Where a relative path begins: workers on a cluster are in directories of their own.
    working_directory: str = field(default_factory=os.getcwd, compare=False)

    @property
    def full_path(self) -> str:
        """Of the file on disk, the same in every process."""
        return self.path if storage.is_remote(self.path) else os.path.join(self.working_directory, self.path)

    def __str__(self) -> str:
        """The name in errors and rows: ``archive.zip!member``."""
        return f"{self.path}!{self.member}" if self.member else self.path


def form_of(path: str) -> Form:
    """By the ending of the name."""
    name = path.lower()
    if name.endswith((".tar", ".tar.gz", ".tgz")):
        return Form.TAR
    if name.endswith(".zip"):
        return Form.ZIP
    return Form.GZIP if name.endswith(".gz") else Form.PLAIN


@contextmanager
def open_place(place: FileLocation) -> Iterator[BinaryIO]:
    """The bytes from the first on; only a plain file can be sought in.

    Raises:
        StorageError: it is not there, or is no readable archive; also where the reading within the context finds that.
    """
    try:
        match place.form:
            case Form.PLAIN:
                with storage.open_file(place.full_path) as plain:
                    yield plain
            case Form.GZIP:
                with _packed(place) as packed, gzip.open(packed) as unzipped:
                    yield _limited(place, unzipped)
            case Form.ZIP:
                with _packed(place) as packed, zipfile.ZipFile(packed) as archive, archive.open(place.member) as stream:
                    yield _limited(place, stream)
            case Form.TAR:
                with _packed(place) as packed, _open_tar(packed) as tape:
                    yield _limited(place, _tar_member(tape, place))
    except _READ_ERRORS as error:
        raise unreadable(place, error) from error


def _packed(place: FileLocation) -> BinaryIO:
    return storage.open_file(place.full_path, buffering=_PACKED_BLOCK_BYTES)


def skip(stream: BinaryIO, count: int, place: FileLocation) -> None:
    """Leave out the first bytes of a stream that was just opened."""
    if place.form is Form.PLAIN:
        stream.seek(count)
        return
    while count:
        data = stream.read(min(count, _SKIPPED_BYTES))
        if not data:
            return
        count -= len(data)


def read_fully(stream: BinaryIO, size: int) -> bytes:
    """As many bytes as are there, at most ``size``: a stream may give less at once."""
    data = stream.read(size)
    if len(data) == size or not data:
        return data
    parts = [data]
    left = size - len(data)
    while left and (data := stream.read(left)):
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A file of an archive."""

    name: str
    #: Bytes, unpacked, as the archive says.
    size: int
    #: Its first bytes, as many as were asked for and are there.
    head: bytes


def members(path: str, form: Form, head_bytes: int) -> list[ArchiveMember]:
    """The files in a zip or tar.

    Raises:
        StorageError: the archive cannot be read, or holds too many files.
    """
    place = FileLocation(path, form)
    try:
        with _packed(place) as packed:
            look = _zip_members if form is Form.ZIP else _tar_members
            found = list(look(packed, path, head_bytes))
    except _READ_ERRORS as error:
        raise unreadable(place, error) from error
    return found


def unreadable(place: FileLocation, error: Exception) -> StorageError:
    """The sentence for what went wrong below us."""
    if isinstance(error, FileNotFoundError):
        return StorageError(f"{place}: no such file; if retention removed it meanwhile, run again")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or type(error).__name__
    if place.form is Form.PLAIN:
        return StorageError(f"{place}: {reason}")
    return StorageError(f"{place}: the archive cannot be read ({reason}); copy or pack it again")


class _BoundedHeader(tarfile.TarInfo):
    """A header that is refused where it is larger than any name: compressed, gigabytes of one are a few megabytes."""

    def _proc_pax(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        self._check_size()
        return super()._proc_pax(archive)  # type: ignore[misc,no-any-return]  # the only place to look before it is read

    def _proc_gnulong(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        self._check_size()
        return super()._proc_gnulong(archive)  # type: ignore[misc,no-any-return]

    def _check_size(self) -> None:
        if self.size > _TAR_HEADER_BYTES_MAX:
            raise tarfile.ReadError(f"a header of {self.size} bytes, {_TAR_HEADER_BYTES_MAX} are the most")


def _zip_members(packed: BinaryIO, path: str, head_bytes: int) -> Iterator[ArchiveMember]:
    with zipfile.ZipFile(packed) as archive:
        infos = [info for info in archive.infolist() if not info.is_dir()]
        _require_few(path, len(infos))
        for info in infos:
            if info.compress_type not in _ZIP_METHODS:
                raise zipfile.BadZipFile(f"method {info.compress_type} of {info.filename}: only deflate is read")
            with archive.open(info) as stream:
                yield ArchiveMember(info.filename, info.file_size, stream.read(head_bytes))


def _tar_members(packed: BinaryIO, path: str, head_bytes: int) -> Iterator[ArchiveMember]:
    is_plain = _is_plain_tar(packed)
    with _open_tar(packed) as tape:
        count = size = 0
        for info in tape:
            stream = tape.extractfile(info) if info.isfile() else None
            if stream is None:
                continue
            count += 1
            _require_few(path, count)
            size += info.size
            if size > COMPRESSED_TAR_BYTES_MAX and not is_plain:
                raise StorageError(
                    f"{path}: holds more than {COMPRESSED_TAR_BYTES_MAX} bytes in a compressed tar, which each task "
                    "would unpack from its start; unpack it, or pack it as .zip or .tar"
                )
            yield ArchiveMember(info.name, info.size, stream.read(head_bytes))


def _open_tar(packed: BinaryIO) -> tarfile.TarFile:
    # Gzip takes the memory that it needs, xz what the archive asks for.
    return tarfile.open(fileobj=packed, mode="r:" if _is_plain_tar(packed) else "r|gz", tarinfo=_BoundedHeader)


def _is_plain_tar(packed: BinaryIO) -> bool:
    """Whether it can be sought in; else it is compressed."""
    begin = packed.read(len(_GZIP_BEGIN))
    packed.seek(0)
    return begin != _GZIP_BEGIN


def _require_few(path: str, count: int) -> None:
    if count > MEMBERS_MAX:
        raise StorageError(f"{path}: holds more than {MEMBERS_MAX} files; pack the log's directory alone")


def _tar_member(tape: tarfile.TarFile, place: FileLocation) -> io.BufferedIOBase:
    for info in tape:
        stream = tape.extractfile(info) if info.name == place.member else None
        if stream is not None:
            return cast(io.BufferedIOBase, stream)
    raise StorageError(f"{place}: is no longer in the archive; run again")


def _limited(place: FileLocation, stream: object) -> BinaryIO:
    return cast(BinaryIO, _Limited(place, cast(BinaryIO, stream)))


class _Limited:
    """A stream that ends in an error where it is longer than any file of a log."""

    def __init__(self, place: FileLocation, stream: BinaryIO) -> None:
        self._place = place
        self._stream = stream
        self._left = FILE_BYTES_MAX

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise StorageError(f"{self._place}: expands to more than {FILE_BYTES_MAX} bytes, as no file of a log does")
        return data
