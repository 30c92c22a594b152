"""Files with certificates and keys: read within limits, written whole, for their owner alone."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.new_files import open_new
from quorate.metadata_log.private_files import exposure
from quorate.scripts.certificates.authority import read_certificates, read_key
from quorate.scripts.certificates.holders import CertificateError

_FILE_BYTES_MAX: Final = 1024 * 1024


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Names the file in what is wrong with it.

    Raises:
        CertificateError: what the block raised, or the system's refusal to read.
    """
    try:
        yield
    except CertificateError as error:
        raise CertificateError(f"{path}: {error}") from error
    except OSError as error:
        raise CertificateError(f"{path} cannot be read: {error.strerror or error}") from error


def read_certificate_file(path: Path) -> list[x509.Certificate]:
    """All certificates of a file, one at least.

    Raises:
        CertificateError: it cannot be read, is too long, or holds none.
    """
    with naming(path), path.open("rb") as file:
        return read_certificates(_bounded(file.read(_FILE_BYTES_MAX + 1)))


def read_key_file(path: Path) -> ec.EllipticCurvePrivateKey:
    """The key of a file.

    Raises:
        CertificateError: it cannot be read, is too long, holds none, or others may use it.
    """
    with naming(path), path.open("rb") as file:
        said = exposure(path, os.fstat(file.fileno()))
        if said is not None:
            raise CertificateError(said)
        return read_key(_bounded(file.read(_FILE_BYTES_MAX + 1)))


def write_whole(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Write files of a directory: what has their names is replaced when all of them are on disk.

    Raises:
        OSError: the disk failed; none was replaced, or not all of them.
    """
    parts: dict[str, Path] = {}
    try:
        for name, content in contents.items():
            with open_new(directory / f".{name}.part") as file:
                parts[name] = directory / f".{name}.part"
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        for name, part in parts.items():
            part.replace(directory / name)
        RealDisk().sync_directory(str(directory))
    finally:
        for part in parts.values():
            part.unlink(missing_ok=True)


def _bounded(content: bytes) -> bytes:
    if len(content) > _FILE_BYTES_MAX:
        raise CertificateError(f"it has more than {_FILE_BYTES_MAX} bytes")
    return content
