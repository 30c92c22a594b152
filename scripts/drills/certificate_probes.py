"""Looks at certificates from outside: who is trusted by whom, who shows what, at the ports of running processes."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.scripts.drills.environment import DEADLINE_S, DrillEnvironment

if TYPE_CHECKING:
    # What makes certificates is slow to import, and most commands make none.
    from quorate.scripts.certificates.authority import Validity
    from quorate.scripts.certificates.certificate_directory import CertificateDirectory

#: The client whose certificates are tried.
PROBE: Final = "client-drill-probe"
_PROBE_S: Final = 2.0
#: Between two looks (s): nothing that is waited for comes within a shorter time than a look at changed files, a second.
_REST_S: Final = 0.25
_END: Final = "-----END CERTIFICATE-----\n"


@dataclass(frozen=True, slots=True)
class PortAnswer:
    """An answer over TLS with the status 200."""

    #: Of whoever answered, in DER.
    certificate: bytes
    body: str


@contextmanager
def probe_of(directory: CertificateDirectory, validity: Validity) -> Iterator[TlsPaths]:
    """A client without rights that has a certificate of the cluster's CA; it is gone afterwards."""
    from quorate.scripts.certificates.holders import client_holder

    paths = directory.issue(client_holder(PROBE.removeprefix("client-")), validity)
    try:
        yield paths
    finally:
        for path in (paths.cert_file, paths.key_file):
            assert path is not None
            path.unlink(missing_ok=True)


def ports(environment: DrillEnvironment) -> dict[str, int]:
    """HTTP ports of all processes, by the names of their certificates."""
    controllers = {one.name: urlsplit(one.url or "").port or 0 for one in environment.controllers.values()}
    return controllers | {f"broker-{one.ids[0]}": one.http_port for one in environment.local.cluster.plan.brokers}


async def answer_at(port: int, context: ssl.SSLContext, path: str = "/livez") -> PortAnswer | None:
    """The answer of whoever listens there; None: there is none, with this context, or another one."""
    try:
        async with asyncio.timeout(_PROBE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
            try:
                writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n".encode())
                head, _, body = (await reader.read()).decode().partition("\r\n\r\n")
                shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                return PortAnswer(shown, body) if shown is not None and " 200 " in head.partition("\r\n")[0] else None
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None


async def takers(environment: DrillEnvironment, context: ssl.SSLContext) -> int:
    """The number of processes that take a client's certificate, and whose own it takes."""
    answers = await asyncio.gather(*(answer_at(port, context) for port in ports(environment).values()))
    return sum(answer is not None for answer in answers)


async def until_taken(environment: DrillEnvironment, probe: TlsPaths, what: str) -> None:
    """Until every process and the client take each other's certificates."""

    async def look() -> bool | None:
        return await takers(environment, TlsFiles(probe).as_client()) == len(ports(environment)) or None

    await until_seen(environment, look, what)


async def until_not_taken(environment: DrillEnvironment, shown: ssl.SSLContext, what: str) -> None:
    """Until no process takes a client's certificate any more; then measure how many do."""

    async def look() -> bool | None:
        return not await takers(environment, shown) or None

    await until_seen(environment, look, what)
    environment.measure("old_ones_let_in", await takers(environment, shown))


async def until_shown(
    environment: DrillEnvironment, names: list[str], directory: Path, context: ssl.SSLContext, what: str
) -> None:
    """Until these processes serve with what lies in their files."""
    port_of = ports(environment)

    async def shows(name: str) -> bool:
        first = (directory / f"{name}.pem").read_text(encoding="ascii").partition(_END)[0] + _END
        answer = await answer_at(port_of[name], context)
        return answer is not None and answer.certificate == ssl.PEM_cert_to_DER_cert(first)

    async def look() -> bool | None:
        return all(await asyncio.gather(*map(shows, names))) or None

    await until_seen(environment, look, what)


async def until_seen(environment: DrillEnvironment, look: Callable[[], Awaitable[bool | None]], what: str) -> float:
    """Look until there is something to see; the moment. A look is several handshakes: writes need the cores, too."""

    async def look_and_rest() -> bool | None:
        seen = await look()
        if seen is None:
            await asyncio.sleep(_REST_S)
        return seen

    await environment.cluster.until(look_and_rest, what, DEADLINE_S)
    return environment.event("seen", what)


def kept(probe: TlsPaths, place: Path) -> TlsPaths:
    """The same files in a place of their own, with the CAs as they are now."""
    from quorate.scripts.certificates.certificate_files import write_whole

    assert probe.cert_file is not None
    assert probe.key_file is not None
    named = {"cert.pem": probe.cert_file, "key.pem": probe.key_file, "ca.pem": probe.ca_files[0]}
    place.mkdir(mode=0o700)
    write_whole(place, {name: path.read_bytes() for name, path in named.items()})
    return TlsPaths(place / "cert.pem", place / "key.pem", (place / "ca.pem",))
