"""A directory with a cluster's CA and what it has issued: files for their owner alone, written whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

from quorate.controller.api.tls_files import TlsPaths
from quorate.scripts.certificates.authority import (
    CertificateAuthority,
    Validity,
    holder_of,
    is_authority,
    pem_of,
    was_issued_by,
)
from quorate.scripts.certificates.certificate_files import naming, read_certificate_file, read_key_file, write_whole
from quorate.scripts.certificates.holders import (
    CA_KEY_NAME,
    CA_NAME,
    CertificateError,
    CertificateHolder,
    files_of,
)

#: Two are enough while one takes over from the other.
_CAS_MAX: Final = 16


class CertificateDirectory:
    """One that holds a CA."""

    def __init__(self, path: Path) -> None:
        """Read the CA.

        Raises:
            CertificateError: there is none that could issue anything here.
        """
        self.path = path
        self._cas = read_certificate_file(path / CA_NAME)
        key = read_key_file(path / CA_KEY_NAME)
        with naming(path / CA_KEY_NAME):
            self._authority = CertificateAuthority.of(self._cas, key)

    @classmethod
    def make(cls, path: Path, cluster_id: str, validity: Validity) -> Self:
        """A new CA in a directory, which is made if there is none.

        Raises:
            CertificateError: there is a CA already, or it is no cluster id; nothing was written.
            OSError: the disk failed.
        """
        for name in (CA_NAME, CA_KEY_NAME):
            if (path / name).exists():
                raise CertificateError(f"{path / name} is there already: renew ca makes a second CA beside it")
        made = CertificateAuthority.make(cluster_id, validity).pair
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(path, {CA_KEY_NAME: made.key, CA_NAME: made.certificate})
        return cls(path)

    @property
    def cluster_id(self) -> str:
        """The cluster whose nodes it names."""
        return self._authority.cluster_id

    def issue(self, holder: CertificateHolder, validity: Validity) -> TlsPaths:
        """A certificate and its key, in new files.

        Raises:
            CertificateError: there is one already, or the CA has expired; nothing was written.
            OSError: the disk failed.
        """
        paths = files_of(self.path, holder.name)
        for path in (paths.cert_file, paths.key_file):
            if path is not None and path.exists():
                raise CertificateError(f"{path} is there already: renew {holder.name} takes another in its place")
        self._issue(holder, validity)
        return paths

    def renew(self, name: str, validity: Validity) -> TlsPaths:
        """Another certificate for the same names, with a new key, in place of the one that is there.

        Raises:
            CertificateError: there is none, or the CA has expired; nothing was written. OSError: the disk failed.
        """
        paths = files_of(self.path, name)
        assert paths.cert_file is not None
        first = read_certificate_file(paths.cert_file)[0]
        with naming(paths.cert_file):
            if is_authority(first):
                raise CertificateError("it is a CA: renew ca makes another beside it")
            holder = holder_of(name, first)
        self._issue(holder, validity)
        return paths

    def renew_authority(self, validity: Validity) -> None:
        """Make another CA, by which everything is issued from now on; those before it are trusted on.

        Raises:
            CertificateError: there are too many already. OSError: the disk failed.
        """
        if len(self._cas) >= _CAS_MAX:
            raise CertificateError(f"{self.path / CA_NAME} holds {len(self._cas)} CAs already: retire those before it")
        made = CertificateAuthority.make(self.cluster_id, validity)
        # Who is cut off here has a CA more that is trusted, and a key that still fits.
        write_whole(self.path, {CA_NAME: made.pair.certificate + pem_of(self._cas)})
        write_whole(self.path, {CA_KEY_NAME: made.pair.key})
        self._cas = [made.certificate, *self._cas]
        self._authority = made

    def retire(self) -> int:
        """Trust no CA any more but the one that issues; the number of those that are gone.

        Raises:
            CertificateError: a certificate here is of another, and would be nobody's; nothing was written.
            OSError: the disk failed.
        """
        issues = self._authority.certificate
        for name in self.names():
            first = read_certificate_file(self.path / f"{name}.pem")[0]
            if not was_issued_by(first, issues):
                raise CertificateError(f"{name} has its certificate of a CA before this one: renew {name} first")
        gone = len(self._cas) - 1
        write_whole(self.path, {CA_NAME: self._authority.pair.certificate})
        self._cas = [issues]
        return gone

    def names(self) -> list[str]:
        """Of all whose certificates are here."""
        return sorted(path.stem for path in self.path.glob("*.pem") if path.name != CA_NAME)

    def _issue(self, holder: CertificateHolder, validity: Validity) -> None:
        made = self._authority.issue(holder, validity)
        write_whole(self.path, {f"{holder.name}.key": made.key, f"{holder.name}.pem": made.certificate})
