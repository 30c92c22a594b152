"""The files to be read: paths of any kind, sorted into the logs and checkpoints of clusters.

A path is a metadata directory, its ``__cluster_metadata-0``, any directory that holds such files, a single segment or
checkpoint, a ``.gz`` of one, or a ``.zip``, ``.tar.gz`` or ``.tar`` of directories.

- A cluster's id is that in ``meta.properties``; where there is none, the one the caller gives, else the name of the
  directory that holds the log, or the archive's.
- Paths of one cluster are one log together, such as an archive of old segments and the directory of today.
- Of two copies of one segment the longer is read, provided that the other is the beginning of it; of two copies of one
  checkpoint either, provided that they are equal. Any other overlap is an error: two nodes' directories are two logs.
- Where one segment ends the next must begin: that is found when they are read (``walk``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from typing import Final

from quorate.metadata_log.batches.batch import HEADER_BYTES, parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import checkpoint_id
from quorate.metadata_log.directory.directory import LOG_DIRECTORY_NAME
from quorate.metadata_log.directory.meta_properties import META_PROPERTIES_NAME, decode_meta_properties
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.errors import MalformedData, QuorateError, StorageError
from quorate.metadata_log.segments.mark import MARK_NAME, Mark, decode_mark, read_mark
from quorate.metadata_log.segments.segment_files import segment_base
from quorate.pipeline.files import storage
from quorate.pipeline.files.archives import ArchiveMember, FileLocation, Form, form_of, members, open_place, read_fully

#: What a member of an archive is read for at first: the header of its first batch, or all of a meta.properties.
_HEAD_BYTES: Final = 4096
_COMPARED_BYTES: Final = 1024 * 1024
_LOOKS_AT_ONCE: Final = 16


class InputError(StorageError):
    """Files that cannot be read as the log that was asked for. Says which, why, and what to do."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path
        self.problem = problem
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class InputFile:
    """A segment or a checkpoint."""

    place: FileLocation
    is_checkpoint: bool
    #: First offset of a segment; the (exclusive) end offset of the state in a checkpoint.
    offset: int
    #: Of a checkpoint by its name; of a segment's first batch, None where it has no readable one.
    epoch: int | None
    #: Bytes; of what is packed, what the archive says, and of a ``.gz`` a guess.
    size: int

    @property
    def name(self) -> str:
        """The name in rows and errors."""
        return str(self.place)


@dataclass(frozen=True, slots=True)
class InputCluster:
    """One cluster's files."""

    cluster_id: str
    #: Ascending by offset.
    segments: tuple[InputFile, ...]
    #: Ascending by (offset, epoch).
    checkpoints: tuple[InputFile, ...]
    #: The last segment's directory, None where that is an archive.
    directory: str | None
    #: What the node that wrote the last segment vouches for; None unless it is Quorate's.
    mark: Mark | None

    @property
    def first_offset(self) -> int | None:
        """The begin of the log, None when there is no segment."""
        return self.segments[0].offset if self.segments else None


def find_inputs(
    paths: Sequence[str],
    *,
    cluster_id: str | None = None,
    mixed: bool = False,
    refused: dict[str, QuorateError] | None = None,
) -> list[InputCluster]:
    """The clusters whose files these paths hold, by id.

    Args:
        cluster_id: of the files beside which no ``meta.properties`` tells it.
        mixed: whether there may be several clusters.
        refused: with ``mixed`` gets what cannot be read, by path or cluster, and the rest is returned; None: an error.

    Raises:
        InputError: nothing there, nothing in it, another cluster than ``cluster_id``, several clusters unless
            ``mixed``, or files that overlap.
        StorageError: a file cannot be read. BadSetting: a URI that ``uris`` does not know.
    """
    found: dict[str, list[_Found]] = {}
    with_all = Bearing(refused if mixed else None)
    for path in paths:
        with with_all.at(path):
            for one in list(_look(path, cluster_id)):
                found.setdefault(one.cluster_id, []).append(one)
    if not paths:
        raise InputError("no path", "nothing to read", "give a metadata directory, or a segment or checkpoint file")
    if len(found) > 1 and not mixed:
        ids = sorted(found)
        where = found[ids[1]][0].path
        raise InputError(
            where, f"is of cluster {ids[1]}, while {found[ids[0]][0].path} is of {ids[0]}",
            "read one cluster at a time, or set the option mixed to true",
        )  # fmt: skip
    clusters = []
    for name in sorted(found):
        with with_all.at(name):
            clusters.append(_cluster(name, found[name]))
    return clusters


@dataclass(frozen=True, slots=True)
class Bearing:
    """The way in which errors are borne: they are raised, or noted, by path or cluster."""

    refused: dict[str, QuorateError] | None

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """A block whose errors are of this path or cluster."""
        try:
            yield
        except QuorateError as error:
            if self.refused is None:
                raise
            self.refused[place] = error


# --- looking -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Found:
    """Files of one directory, or of one directory in an archive."""

    path: str
    cluster_id: str
    files: list[InputFile]
    #: None in an archive, like the next one.
    directory: str | None = None
    mark: Mark | None = None


def _look(path: str, cluster_id: str | None) -> Iterator[_Found]:
    path = storage.checked(path)
    if storage.is_directory(path):
        yield _directory(path, cluster_id)
        return
    if not storage.is_file(path):
        is_there = not storage.is_remote(path) and os.path.exists(path)
        what = "neither a regular file nor a directory" if is_there else "no such file or directory"
        raise InputError(path, what, "give a metadata directory, a segment or a checkpoint")
    form = form_of(path)
    if form in (Form.ZIP, Form.TAR):
        yield from _archive(path, form, cluster_id)
        return
    parent = os.path.dirname(storage.absolute(path))
    mark = _mark(parent)
    file = _single(path, form)
    yield _Found(path, _cluster_id(parent, path, cluster_id), [file], parent, mark)


def _mark(directory: str) -> Mark | None:
    """Read before the files' sizes are: what it vouches for is then within them."""
    if not storage.is_remote(directory):
        return read_mark(RealDisk(), directory)
    path = f"{directory}/{MARK_NAME}"
    return decode_mark(storage.read(path), path) if storage.is_file(path) else None


def _directory(path: str, cluster_id: str | None) -> _Found:
    inner = os.path.join(path, LOG_DIRECTORY_NAME)
    directory = inner if storage.is_directory(inner) else path
    mark = _mark(directory)
    # Of a store each look is some requests: a wait, which others share.
    with ThreadPoolExecutor(_LOOKS_AT_ONCE) as pool:
        looked = pool.map(_file_in, repeat(directory), storage.names(directory))
        files = [file for file in looked if file is not None]
    if not files:
        raise InputError(
            directory, "holds no segment (*.log) and no checkpoint (*.checkpoint)", "give a directory that has some"
        )
    return _Found(directory, _cluster_id(directory, directory, cluster_id), files, directory, mark)


def _file_in(directory: str, name: str) -> InputFile | None:
    bare = name.removesuffix(".gz")
    if checkpoint_id(bare) is None and segment_base(bare) is None:
        return None
    place = FileLocation(os.path.join(directory, name), Form.GZIP if name.endswith(".gz") else Form.PLAIN)
    return _file(place, bare, _size(place), None)


def _single(path: str, form: Form) -> InputFile:
    place = FileLocation(path, form)
    name = os.path.basename(path).removesuffix(".gz")
    file = _file(place, name, _size(place), None)
    if file is not None:
        return file
    if name.endswith(".checkpoint"):
        remedy = "name it as Kafka does, <end offset, 20 digits>-<epoch, 10 digits>.checkpoint"
        raise InputError(path, "the name does not tell which offset this checkpoint covers", remedy)
    with open_place(place) as stream:
        head = stream.read(HEADER_BYTES)
    try:
        header = parse_header(head)
    except MalformedData as error:
        raise InputError(path, f"is neither a segment nor a checkpoint ({error})", "give one, or an archive") from error
    return InputFile(place, False, header.base_offset, header.epoch, _size(place))


def _archive(path: str, form: Form, cluster_id: str | None) -> Iterator[_Found]:
    groups: dict[str, _Found] = {}
    metas: dict[str, str] = {}
    for member in members(path, form, _HEAD_BYTES):
        directory, _, name = member.name.replace("\\", "/").rpartition("/")
        if name == META_PROPERTIES_NAME:
            metas[directory] = decode_meta_properties(member.head, f"{path}!{member.name}").cluster_id
        file = _file_of_member(FileLocation(path, form, member.name), name, member)
        if file is not None:
            groups.setdefault(directory, _Found(f"{path}!{directory}" if directory else path, "", []))
            groups[directory].files.append(file)
    if not groups:
        raise InputError(path, "holds no segment (*.log) and no checkpoint (*.checkpoint)", "pack a metadata directory")
    for directory, found in groups.items():
        above = directory.rpartition("/")[0]
        named = metas.get(directory) or (metas.get(above) if _is_log_directory(directory) else None)
        own = (above if _is_log_directory(directory) else directory).rpartition("/")[2]
        found.cluster_id = _checked_id(named, found.path, cluster_id) or own or _stem(path)
        yield found


def _file_of_member(place: FileLocation, name: str, member: ArchiveMember) -> InputFile | None:
    if name.endswith(".gz"):
        return None  # packed twice: nobody does that
    return _file(place, name, member.size, member.head)


def _file(place: FileLocation, name: str, size: int, head: bytes | None) -> InputFile | None:
    """The file of that name, None for files of other kinds."""
    checkpoint = checkpoint_id(name)
    if checkpoint is not None:
        return InputFile(place, True, checkpoint.end_offset, checkpoint.epoch, size)
    base = segment_base(name)
    if base is None:
        return None
    if head is None:
        with open_place(place) as stream:
            head = stream.read(HEADER_BYTES)
    try:
        epoch = parse_header(head).epoch
    except MalformedData:
        epoch = None  # said when it is read
    return InputFile(place, False, base, epoch, size)


def _size(place: FileLocation) -> int:
    """Bytes to be read, for planning: of a gzip, what it says of itself, which is right below 4 GiB."""
    if place.form is not Form.GZIP:
        return storage.size(place.full_path)
    with storage.open_file(place.full_path) as stream:
        end = stream.seek(0, os.SEEK_END)
        stream.seek(max(0, end - 4))
        return int.from_bytes(stream.read(4), "little")


# --- clusters ----------------------------------------------------------------------------------------


def _is_log_directory(directory: str) -> bool:
    return directory.rpartition("/")[2] == LOG_DIRECTORY_NAME


def _cluster_id(directory: str, path: str, given: str | None) -> str:
    directory = storage.absolute(directory)
    above = os.path.dirname(directory) if _is_log_directory(directory) else directory
    meta = os.path.join(above, META_PROPERTIES_NAME)
    named = None
    if storage.is_file(meta):
        named = decode_meta_properties(storage.read(meta), meta).cluster_id
    return _checked_id(named, path, given) or os.path.basename(above) or "cluster"


def _checked_id(named: str | None, path: str, given: str | None) -> str | None:
    if named is not None and given is not None and named != given:
        raise InputError(path, f"is of cluster {named}, not of {given}", "leave the option clusterId out")
    return named or given


def _stem(path: str) -> str:
    name = os.path.basename(path)
    return next((name[: -len(end)] for end in (".tar.gz", ".tgz", ".tar", ".zip") if name.endswith(end)), name)


def _cluster(cluster_id: str, found: Iterable[_Found]) -> InputCluster:
    found = list(found)
    files = [file for one in found for file in one.files]
    segments = _without_copies(file for file in files if not file.is_checkpoint)
    checkpoints = _without_copies(file for file in files if file.is_checkpoint)
    # What is known of the end of the log is what the node says that wrote the last segment.
    last = next((one for one in found if segments and segments[-1] in one.files), None)
    return InputCluster(
        cluster_id, segments, checkpoints, last.directory if last else None, last.mark if last else None
    )


def _without_copies(files: Iterable[InputFile]) -> tuple[InputFile, ...]:
    kept: list[InputFile] = []
    for file in sorted(files, key=lambda file: (file.offset, file.epoch or 0, file.is_checkpoint)):
        if not kept or not _is_same_place(kept[-1], file):
            kept.append(file)
        elif kept[-1].place != file.place:
            kept[-1] = _longer(kept[-1], file)
    return tuple(kept)


def _is_same_place(one: InputFile, other: InputFile) -> bool:
    return one.offset == other.offset and (not one.is_checkpoint or one.epoch == other.epoch)


def _longer(one: InputFile, other: InputFile) -> InputFile:
    """Of two copies the one to read."""
    with open_place(one.place) as first, open_place(other.place) as second:
        left = right = b""
        while left == right:
            left, right = read_fully(first, _COMPARED_BYTES), read_fully(second, _COMPARED_BYTES)
            if not left and not right:
                break
    longer, shorter = (one, left), (other, right)
    if len(right) > len(left):
        longer, shorter = shorter, longer
    is_beginning = longer[1].startswith(shorter[1])
    if is_beginning and (not one.is_checkpoint or left == right):
        return longer[0]
    what = "checkpoints" if one.is_checkpoint else "segments"
    raise InputError(
        other.name, f"and {one.name} are different {what} of one name, at offset {one.offset}",
        "give the directory of one node only, or both with different cluster ids",
    )  # fmt: skip
