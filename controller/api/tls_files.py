"""Certificates, key and CAs of one process or command, read anew when their files have changed.

They are taken whole or not at all: where the new ones cannot be used the old ones stay, and ``trouble`` says why.
Each handshake takes the context of its moment. Those who are connected stay, as long as what they have shown is good by
the context of the moment (``metadata_log.peer_certificates``).
"""

from __future__ import annotations

import ssl
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NoReturn

from quorate.controller.api.tls_contexts import CertificateEnded
from quorate.metadata_log.arguments import checked_calls
from quorate.metadata_log.errors import InvalidArgument, QuorateError
from quorate.metadata_log.private_files import exposure

#: Between two looks at the files, in seconds.
_LOOK_S: Final = 1.0
_FILE_BYTES_MAX: Final = 1024 * 1024
_CA_FILES_MAX: Final = 16
#: Before the end of a certificate somebody has to do something: as long as the people who do it may be away.
_WARNING_S: Final = 14 * 86_400.0
#: Seconds between two looks at that.
EXPIRY_LOOK_S: Final = 10.0
#: OpenSSL's X509_V_ERR_CERT_HAS_EXPIRED.
_HAS_EXPIRED: Final = 10


class InvalidTlsFiles(QuorateError):
    """Certificates, a key or CAs that cannot be used. Names the file and the rule."""


@dataclass(frozen=True, slots=True)
class TlsPaths:
    """The files, in PEM. Without ``ca_files`` those whom the system trusts are trusted. Texts become paths.

    Raises:
        InvalidArgument: what is given is no path.
    """

    cert_file: Path | None = None
    key_file: Path | None = None
    ca_files: Sequence[Path] = ()

    def __post_init__(self) -> None:
        if isinstance(self.ca_files, str | Path):
            raise InvalidArgument(f"ca_files must be a sequence of paths, not one {type(self.ca_files).__name__}")
        for name in ("cert_file", "key_file"):
            path = getattr(self, name)
            object.__setattr__(self, name, None if path is None else _path(name, path))
        object.__setattr__(self, "ca_files", tuple(_path("ca_files", path) for path in self.ca_files))

    @property
    def all(self) -> Iterator[Path]:
        """All that are named."""
        yield from (path for path in (self.cert_file, self.key_file, *self.ca_files) if path is not None)


def _path(name: str, path: object) -> Path:
    if not isinstance(path, str | Path):
        raise InvalidArgument(f"{name} must be a path, not {type(path).__name__}")
    return Path(path)


@dataclass(frozen=True, slots=True)
class _Loaded:
    #: Of each file: which one it was, and when it was written.
    stamps: tuple[tuple[int, int, int], ...]
    client: ssl.SSLContext
    #: Of processes that serve.
    server: ssl.SSLContext | None = None
    peer_client: ssl.SSLContext | None = None
    peer_server: ssl.SSLContext | None = None
    expires_at: float | None = None


@checked_calls
class TlsFiles:
    """``as_client``, ``as_node``, ``as_server``, ``as_peer_client`` and ``as_peer_server`` are ``TlsContexts``."""

    def __init__(
        self,
        paths: TlsPaths,
        *,
        is_server: bool = False,
        lets_clients_show: bool = False,
        check: Callable[[bytes], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """Read them.

        Args:
            is_server: whether it is served with them: then all files are there, and the CAs have issued the
                certificate, for whoever asks this process looks at it with the same CAs.
            lets_clients_show: whether clients are asked for their certificates, which must be of the CAs.
            check: looks at the certificate (DER) that is served with; raises QuorateError where it must not be.
            clock: seconds.
            wall_s: seconds since 1970.

        Raises:
            InvalidTlsFiles: they cannot be used.
        """
        self._paths = paths
        self.is_server = is_server
        self._lets_clients_show = lets_clients_show
        self._check = check
        self._clock = clock
        self._wall_s = wall_s
        #: Why changed files are not used; None: they are, or have not changed.
        self.trouble: str | None = None
        self._loaded = self._load()
        self._looked_at = clock()

    def as_server(self) -> ssl.SSLContext:
        """With which TLS is spoken to who connects."""
        self._look()
        assert self._loaded.server is not None, "it was made for a client"
        return self._loaded.server

    def as_client(self) -> ssl.SSLContext:
        """With which others are asked: names are checked, and CAs."""
        self._look()
        return self._loaded.client

    def as_node(self) -> ssl.SSLContext:
        """With which a process that serves asks others as itself.

        Who is asked refuses an ended certificate when the request may already be under way (in TLS 1.3 a client's is
        looked at last), and closes what connections stand: of such a request nobody would know whether it was done.

        Raises:
            CertificateEnded: its own has ended.
        """
        ends_at = self.expires_at
        if ends_at is not None and self._wall_s() >= ends_at:
            raise CertificateEnded("the certificate of this process has ended, and nobody believes who it is: renew it")
        return self._loaded.client

    def as_peer_server(self) -> ssl.SSLContext:
        """With which a node like this one is spoken to that connects: TLS 1.3, and it shows its certificate."""
        self._look()
        assert self._loaded.peer_server is not None, "it was made for a client"
        return self._loaded.peer_server

    def as_peer_client(self) -> ssl.SSLContext:
        """With which such a node is asked. CAs are checked, and no names: who it is is its certificate's to say."""
        self._look()
        assert self._loaded.peer_client is not None, "it was made for a client"
        return self._loaded.peer_client

    @property
    def expires_at(self) -> float | None:
        """The time at which the certificate of a server ends, in seconds since 1970."""
        self._look()
        return self._loaded.expires_at

    def _look(self) -> None:
        now = self._clock()
        if now - self._looked_at < _LOOK_S:
            return
        self._looked_at = now
        try:
            if self.trouble is None and self._stamps() == self._loaded.stamps:
                return
            self._loaded = self._load()
            self.trouble = None
        except InvalidTlsFiles as error:
            self.trouble = f"what was read before is used on: {error}"

    def _load(self) -> _Loaded:
        stamps = self._stamps()
        try:
            loaded = self._load_server(stamps) if self.is_server else _Loaded(stamps, self._client_in_time())
        except ssl.SSLError as error:
            self._refuse(_reason(error))
        except OSError as error:
            self._refuse(error.strerror or str(error))
        if self._stamps() != stamps:
            self._refuse("they change just now")
        return loaded

    def _load_server(self, stamps: tuple[tuple[int, int, int], ...]) -> _Loaded:
        """All that a server has.

        Raises:
            InvalidTlsFiles: the certificate is not for this process. OSError, ssl.SSLError: they cannot be used.
        """
        client, server = self._client(), self._server()
        certificate, expires_at = _seen(server, client)
        try:
            if self._check is not None:
                self._check(certificate)
        except QuorateError as error:
            self._refuse(str(error))
        return _Loaded(stamps, client, server, _among_peers(self._client()), _among_peers(self._server()), expires_at)

    def _client_in_time(self) -> ssl.SSLContext:
        """A client's, whose own certificate is good: a server may refuse one that is not without a word.

        Raises:
            InvalidTlsFiles: it has expired. OSError, ssl.SSLError: the files cannot be used.
        """
        client = self._client()
        if self._paths.cert_file is not None and self._has_expired(self._paths.cert_file):
            self._refuse("the certificate has expired, by the clock of this machine: renew it")
        return client

    def _has_expired(self, cert_file: Path) -> bool:
        """Whether the certificate has ended. Shown to itself: its issuer need not be known where it is shown from."""
        asked, asking = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        asking.check_hostname, asking.verify_mode = False, ssl.CERT_NONE
        asked.load_verify_locations(cert_file)
        asked.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        asked.verify_mode = ssl.CERT_REQUIRED
        for context in (asked, asking):
            self._show(context)
        try:
            _through(asked, asking)
        except ssl.SSLError as error:
            return getattr(error, "verify_code", None) == _HAS_EXPIRED
        return False

    def _client(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        if self._paths.ca_files:
            self._trust(context)
        else:
            context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        if self._paths.cert_file is not None:
            self._show(context)
        return context

    def _server(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # Every connection shows its certificates: none is let in by what it was told before.
        context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_RENEGOTIATION
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        self._show(context)
        self._trust(context)
        context.verify_mode = ssl.CERT_OPTIONAL if self._lets_clients_show else ssl.CERT_NONE
        return context

    def _show(self, context: ssl.SSLContext) -> None:
        assert self._paths.cert_file is not None
        context.load_cert_chain(self._paths.cert_file, self._paths.key_file, password=_no_password)

    def _trust(self, context: ssl.SSLContext) -> None:
        for path in self._paths.ca_files:
            context.load_verify_locations(path)

    def _stamps(self) -> tuple[tuple[int, int, int], ...]:
        """As they are now.

        Raises:
            InvalidTlsFiles: one is not there, no regular file, too large, or a key that others may read.
        """
        found = []
        for path in self._paths.all:
            try:
                status = path.stat()
            except OSError as error:
                raise InvalidTlsFiles(f"{path} cannot be read: {error.strerror or error}") from error
            if not stat.S_ISREG(status.st_mode):
                raise InvalidTlsFiles(f"{path} is no regular file: nobody waits for a pipe or a device")
            if status.st_size > _FILE_BYTES_MAX:
                raise InvalidTlsFiles(f"{path} has {status.st_size} bytes: at most {_FILE_BYTES_MAX} are read")
            if path == self._paths.key_file and (said := exposure(path, status)) is not None:
                raise InvalidTlsFiles(f"{path} {said}")
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(found)

    def _refuse(self, why: str) -> NoReturn:
        raise InvalidTlsFiles(f"{', '.join(map(str, self._paths.all))}: {why}")


def expiry_sentence(expires_at: float, now_s: float) -> str | None:
    """The sentence on a certificate that is about to end; None: it is good for two weeks and more.

    Moments are seconds since 1970.
    """
    left_s = expires_at - now_s
    if left_s >= _WARNING_S:
        return None
    ends = datetime.fromtimestamp(expires_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    renew = "renew it, the files are read again by themselves"
    if left_s <= 0:
        return f"it has expired at {ends}, and nobody may trust this node: {renew}"
    return f"it expires at {ends}, in {left_s / 86_400:.1f} days: {renew}"


def check_paths(paths: TlsPaths, *, is_server: bool) -> None:
    """Look at what was named.

    Raises:
        ValueError: some of what belongs together is missing.
    """
    if (paths.cert_file is None) != (paths.key_file is None):
        raise ValueError("cert_file and key_file belong together: name both, or none")
    if is_server and bool(paths.ca_files) != (paths.cert_file is not None):
        raise ValueError("cert_file, key_file and ca_files belong together: name all of them, or none")
    if len(paths.ca_files) > _CA_FILES_MAX:
        raise ValueError(f"ca_files names {len(paths.ca_files)} files: at most {_CA_FILES_MAX}")


def _no_password() -> bytes:
    raise InvalidTlsFiles("the key has a password, and nobody is there to say it: keep it without, for its owner alone")


def _among_peers(context: ssl.SSLContext) -> ssl.SSLContext:
    """The same between nodes: both show certificates, in TLS 1.3 alone."""
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _seen(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[bytes, float]:
    """A server's certificate (DER), and when it ends, in seconds since 1970, as a client of its CAs sees it.

    Raises:
        ssl.SSLError: the client does not trust it.
    """
    asking_context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    asking_context.check_hostname = False
    asking_context.load_verify_locations(cadata=b"".join(client.get_ca_certs(binary_form=True)))
    asking = _through(server, asking_context)
    shown = asking.getpeercert()
    assert shown is not None, "a client has looked at it"
    certificate = asking.getpeercert(binary_form=True)
    assert certificate is not None
    return certificate, float(ssl.cert_time_to_seconds(str(shown["notAfter"])))


def _through(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """The client's end of a handshake between the two, in memory.

    Raises:
        ssl.SSLError: one of them refuses the other.
    """
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asked = server.wrap_bio(to_server, to_client, server_side=True)
    asking = client.wrap_bio(to_client, to_server)
    for turn in (asking, asked, asking, asked):
        try:
            turn.do_handshake()
        except ssl.SSLWantReadError:
            continue
    return asking


def _reason(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate is not of one of the CAs, or not now: {error.verify_message}"
    return {
        "KEY_VALUES_MISMATCH": "the key is not that of the certificate",
        "NO_START_LINE": "one of them holds no PEM of its kind",
    }.get(error.reason or "", (error.reason or str(error)).lower().replace("_", " "))
