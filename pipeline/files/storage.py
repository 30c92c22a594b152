"""Files where they are: on this machine's file system, or in a store that every process reaches by itself.

A store is named by a URI, as ``s3://bucket/key``, and read through Arrow, in the driver and in each worker alike: no
file passes through the JVM, and the machines share nothing but the store. Where the store is, and who one is, Arrow
finds out in each process: for S3 from the variables ``AWS_*``, the profile, or the role of the machine.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

from quorate.metadata_log.errors import StorageError
from quorate.metadata_log.new_files import open_new
from quorate.metadata_log.regular_files import reading
from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files.uris import URI, local_path

#: What a store's client needs that is often not there.
_AZURE: Final = "; a URI is abfs://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH, and Azure's variables say who one is"
_REMEDIES: Final = {
    "hdfs": "; Hadoop's client is needed: JAVA_HOME, HADOOP_HOME, and CLASSPATH as `hadoop classpath --glob` has it",
    "abfs": _AZURE,
    "abfss": _AZURE,
}
_SAID_MAX: Final = 300
#: How long a store of Google's may take to answer.
_RETRY_SECONDS: Final = 30
#: What Arrow calls the stores of these schemes.
_SCHEMES: Final = {"s3": "s3", "s3a": "s3", "gs": "gs", "hdfs": "hdfs", "abfs": "abfs", "abfss": "abfss"}


def checked(text: str) -> str:
    """A path, or a URI of a store, as it was given; a ``file:`` URI as the path.

    Raises:
        BadSetting: a URI of another scheme.
    """
    scheme = URI.match(text)
    if scheme is None or scheme[1].lower() == "file":
        return local_path(text)
    if scheme[1].lower() not in _SCHEMES or not is_remote(text):
        known = ", ".join(f"{name}://" for name in _SCHEMES)
        raise BadSetting(f"{text}: is neither a path nor a URI that can be read: those begin with file:, {known}")
    return text.rstrip("/")


def is_remote(path: str) -> bool:
    """Whether it names something in a store."""
    return "://" in path and URI.match(path) is not None


def absolute(path: str) -> str:
    """The same for every process."""
    return path if is_remote(path) else os.path.abspath(path)


def is_directory(path: str) -> bool:
    """Whether there is a directory; in a store, whether there are names that begin so."""
    return _type(path) == "Directory" if is_remote(path) else os.path.isdir(path)


def is_file(path: str) -> bool:
    """Whether there is a file."""
    return _type(path) == "File" if is_remote(path) else os.path.isfile(path)


def names(directory: str) -> list[str]:
    """The names in a directory, sorted."""
    if not is_remote(directory):
        return sorted(os.listdir(directory))
    from pyarrow.fs import FileSelector

    with opened(directory) as (store, key):
        return sorted(info.base_name for info in store.get_file_info(FileSelector(key)))


def size(path: str) -> int:
    """Bytes of a file."""
    if not is_remote(path):
        return os.path.getsize(path)
    with opened(path) as (store, key):
        return int(store.get_file_info(key).size or 0)


def open_file(path: str, *, buffering: int = 0) -> BinaryIO:
    """A file from its first byte on; it can be sought in.

    Args:
        buffering: bytes read ahead; 0: none.

    Raises:
        OSError: as the system, or the store, has it.
    """
    if not is_remote(path):
        return reading(path, buffering)
    with opened(path) as (store, key):
        found = store.open_input_file(key)
    return cast(BinaryIO, io.BufferedReader(found, buffering) if buffering else found)


def read(path: str) -> bytes:
    """All of a small file; raises as ``open_file``."""
    with open_file(path) as stream:
        return stream.read()


def _type(path: str) -> str:
    with opened(path) as (store, key):
        return str(store.get_file_info(key).type.name)


def files_under(directory: str) -> dict[str, int]:
    """All files in a directory and those below it, with their bytes; none where it is not there."""
    if not is_remote(directory):
        return {str(path): path.stat().st_size for path in sorted(Path(directory).rglob("*")) if path.is_file()}
    from pyarrow.fs import FileSelector

    with opened(directory) as (store, key):
        found = store.get_file_info(FileSelector(key, allow_not_found=True, recursive=True))
    return {f"{directory}{info.path.removeprefix(key)}": int(info.size) for info in found if info.type.name == "File"}


def write_file(path: str, write: Callable[[BinaryIO], None]) -> int:
    """Write a file whole or not at all, with the directories that it is in, and return its bytes."""
    if is_remote(path):
        with opened(path) as (store, key):
            with _new_file(store, key) as stream:
                write(stream)
            return int(store.get_file_info(key).size)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    with open_new(unfinished) as file:
        write(file)
    unfinished.replace(target)
    return target.stat().st_size


def _new_file(store: Any, key: str) -> Any:
    try:
        return store.open_output_stream(key)
    except FileNotFoundError:  # a store where directories do not come by themselves
        store.create_dir(os.path.dirname(key), recursive=True)
        return store.open_output_stream(key)


def remove_file(path: str) -> None:
    """Remove a file that is there."""
    if not is_remote(path):
        Path(path).unlink()
        return
    with opened(path) as (store, key):
        store.delete_file(key)


def dataset(files: Sequence[str], schema: Any = None) -> Any:
    """Parquet files of one place as Arrow's dataset, as a schema has them; None: as the first does."""
    import pyarrow.dataset as pads

    if not is_remote(files[0]):
        return pads.dataset(list(files), schema, format="parquet")
    with opened(files[0]) as (store, _):
        return pads.dataset([_key(path) for path in files], schema, filesystem=store, format="parquet")


def forget_stores() -> None:
    """Look up anew where stores are, and who one is."""
    _store.cache_clear()


@contextmanager
def opened(path: str) -> Iterator[tuple[Any, str]]:
    """The store of a path, and what that calls it; what goes wrong with the store itself is told with the path.

    Raises:
        StorageError: the store failed. FileNotFoundError: there is no such path.
    """
    try:
        yield _store_of(path)[0], _key(path)
    except FileNotFoundError:
        raise
    except (OSError, ValueError, NotImplementedError) as error:
        raise StorageError(f"{path}: the store failed ({_first_line(error)}){_remedy(path)}") from error


def _first_line(error: Exception) -> str:
    """The first line of a store client's error, without the places at which it looked for its parts."""
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0] if len(lines[0]) <= _SAID_MAX else f"{lines[0][:_SAID_MAX]}..."


def _remedy(path: str) -> str:
    return _REMEDIES.get(_SCHEMES[path.partition("://")[0].lower()], "")


def _key(path: str) -> str:
    """Arrow's name for it in the store: behind the bucket, the container, or the root."""
    return f"{_store_of(path)[1]}{path.partition('://')[2].partition('/')[2]}".rstrip("/") or "/"


def _store_of(path: str) -> tuple[Any, str]:
    scheme, _, rest = path.partition("://")
    return _store(_SCHEMES[scheme.lower()], rest.partition("/")[0])


@lru_cache(maxsize=64)
def _store(scheme: str, authority: str) -> tuple[Any, str]:
    """One connection a process and authority, and what names in it begin with: a bucket, a container, or ``/``."""
    from pyarrow import fs

    if scheme != "s3":
        # Google's client tries again for a quarter of an hour, unless it is told otherwise.
        query = f"?retry_limit_seconds={_RETRY_SECONDS}" if scheme == "gs" else ""
        store, root = fs.FileSystem.from_uri(f"{scheme}://{authority}/{query}")
        return store, f"{root.rstrip('/')}/"
    return _s3(authority), f"{authority}/"


def _s3(bucket: str) -> Any:
    from pyarrow import fs

    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if endpoint:
        return fs.S3FileSystem(endpoint_override=endpoint, region=region or "us-east-1")
    return fs.S3FileSystem(region=region or fs.resolve_s3_region(bucket))
