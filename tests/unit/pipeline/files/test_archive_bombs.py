"""Archives that ask for more memory than any log would: refused in a sentence, before it is taken."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.metadata_log.errors import StorageError
from quorate.pipeline.files.archives import Form, members

HEADER_BYTES = 2 * 1024 * 1024


def header_of(kind: bytes) -> bytes:
    """A tar that begins with a header that is longer than any name."""
    info = tarfile.TarInfo("././@LongLink")
    info.type, info.size = kind, HEADER_BYTES
    file = tarfile.TarInfo("00000000000000000000.log")
    return info.tobuf(tarfile.GNU_FORMAT) + b"a" * HEADER_BYTES + file.tobuf(tarfile.GNU_FORMAT) + bytes(1024)


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_tar_with_an_endless_header_is_refused(tmp_path: Path, kind: bytes, pack: Callable[[bytes], bytes]) -> None:
    path = tmp_path / "log.tgz"
    path.write_bytes(pack(header_of(kind)))
    with pytest.raises(StorageError, match=f"a header of {HEADER_BYTES} bytes, 1048576 are the most"):
        members(str(path), Form.TAR, 16)


@pytest.mark.parametrize("pack", [lzma.compress, bz2.compress], ids=["xz", "bzip2"])
def test_tar_that_is_packed_otherwise_than_by_gzip_is_refused(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """An xz says itself how much memory it takes, four gigabytes at most."""
    path = tmp_path / "log.tgz"
    file = tarfile.TarInfo("00000000000000000000.log")
    path.write_bytes(pack(file.tobuf(tarfile.GNU_FORMAT) + bytes(1024)))
    with pytest.raises(StorageError, match="the archive cannot be read"):
        members(str(path), Form.TAR, 16)


@pytest.mark.parametrize("name", ["a" * 300, "b" * 60_000])
def test_tar_with_a_long_name_is_read(tmp_path: Path, name: str) -> None:
    path = tmp_path / "log.tar"
    with tarfile.open(path, "w") as archive:
        info = tarfile.TarInfo(name)
        info.size = 3
        archive.addfile(info, io.BytesIO(b"abc"))
    assert [(one.name, one.head) for one in members(str(path), Form.TAR, 16)] == [(name, b"abc")]


@pytest.mark.parametrize(
    ("method", "is_read"),
    [
        (zipfile.ZIP_DEFLATED, True),
        (zipfile.ZIP_STORED, True),
        (zipfile.ZIP_LZMA, False),
        (zipfile.ZIP_BZIP2, False),
    ],
)
def test_zip_is_read_where_it_takes_no_more_memory_than_it_has_bytes(
    tmp_path: Path, method: int, *, is_read: bool
) -> None:
    path = tmp_path / "log.zip"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("00000000000000000000.log", b"abc")
    if is_read:
        assert [one.head for one in members(str(path), Form.ZIP, 16)] == [b"abc"]
        return
    with pytest.raises(StorageError, match=f"method {method} of 00000000000000000000.log: only deflate is read"):
        members(str(path), Form.ZIP, 16)
