"""Drills on certificates: the CA and all that it issued are exchanged under writes, and nothing is restarted for it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME
from quorate.scripts.drills.drill import Drill
from quorate.scripts.drills.environment import DEADLINE_S, DrillEnvironment
from quorate.scripts.drills.rotation import EXPECTED, UNNOTICED, restart_a_standby, under_writes

_DAYS: Final = 30
_PROBE: Final = "drill-probe"
_PROBE_S: Final = 2.0


def _ports(environment: DrillEnvironment) -> Iterator[tuple[str, int]]:
    """HTTP ports of all processes, by the names of their certificates."""
    for url, node in ((one.url, one) for one in environment.controllers.values()):
        yield node.name, urlsplit(url or "").port or 0
    for one in environment.local.cluster.plan.brokers:
        yield f"broker-{one.ids[0]}", one.http_port


async def _shown_at(port: int, context: ssl.SSLContext) -> bytes | None:
    """The certificate (DER) of whoever answers a request there; None: nobody does, with this context."""
    try:
        async with asyncio.timeout(_PROBE_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname="127.0.0.1")
            try:
                writer.write(b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                is_answered = b" 200 " in await reader.readline()
                shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
                return shown if is_answered else None
            finally:
                writer.close()
    except (OSError, TimeoutError):
        return None


async def _until_all(environment: DrillEnvironment, holds: Callable[[str, int], Awaitable[bool]], what: str) -> None:
    async def look() -> bool | None:
        asked = [holds(name, port) for name, port in _ports(environment)]
        return all(await asyncio.gather(*asked)) or None

    await environment.cluster.until(look, what, DEADLINE_S)
    environment.event("seen", what)


async def _until_trusted(environment: DrillEnvironment, probe: TlsPaths, what: str) -> None:
    async def is_trusted(name: str, port: int) -> bool:
        return await _shown_at(port, TlsFiles(probe).as_client()) is not None

    await _until_all(environment, is_trusted, what)


async def _until_shown(environment: DrillEnvironment, directory: Path, probe: TlsPaths, what: str) -> None:
    """Until every process serves with what lies in its file."""

    async def shows(name: str, port: int) -> bool:
        text = (directory / f"{name}.pem").read_text(encoding="ascii")
        end = text.index("-----END CERTIFICATE-----")
        return await _shown_at(port, TlsFiles(probe).as_client()) == ssl.PEM_cert_to_DER_cert(
            text[:end] + "-----END CERTIFICATE-----\n"
        )

    await _until_all(environment, shows, what)


def _kept(probe: TlsPaths, place: Path) -> TlsPaths:
    """The same files in a place of their own, with the CAs as they are now."""
    assert probe.cert_file is not None
    assert probe.key_file is not None
    named = {"cert.pem": probe.cert_file, "key.pem": probe.key_file, "ca.pem": probe.ca_files[0]}
    from quorate.scripts.certificates.certificate_files import write_whole

    place.mkdir(mode=0o700)
    write_whole(place, {name: path.read_bytes() for name, path in named.items()})
    return TlsPaths(place / "cert.pem", place / "key.pem", (place / "ca.pem",))


async def rotate_ca(environment: DrillEnvironment) -> None:
    from quorate.scripts.certificates.authority import Validity
    from quorate.scripts.certificates.certificate_directory import CertificateDirectory
    from quorate.scripts.certificates.holders import client_holder

    path = environment.local.cluster.directory / CERTIFICATES_NAME
    directory, validity = CertificateDirectory(path), Validity.of(_DAYS)
    probe = directory.issue(client_holder(_PROBE), validity)
    try:
        async with under_writes(environment):
            begun = environment.event("fault", "a second CA is trusted besides the first")
            directory.renew_authority(validity)
            old = _kept(probe, environment.workplace / "old-probe")
            directory.renew(f"client-{_PROBE}", validity)
            await _until_trusted(environment, probe, "all trust what the second CA issues")
            for name in directory.names():
                directory.renew(name, validity)
            await _until_shown(environment, path, probe, "all show certificates of the second CA")
            directory.retire()
            environment.event("fault", "the first CA is trusted no more")
            await _until_none_takes(environment, old)
        await environment.settle(max(begun, await restart_a_standby(environment)))
    finally:
        _remove(probe)


async def _until_none_takes(environment: DrillEnvironment, old: TlsPaths) -> None:
    """Measure how many processes take a certificate of the first CA, once all had the time to stop."""
    context = TlsFiles(old).as_client()

    async def takers() -> list[bytes | None]:
        return await asyncio.gather(*(_shown_at(port, context) for _, port in _ports(environment)))

    async def look() -> bool | None:
        return not any(await takers()) or None

    await environment.cluster.until(look, "nobody takes what the first CA issued", DEADLINE_S)
    environment.measure("old_ones_let_in", sum(one is not None for one in await takers()))


async def rotate_certificates(environment: DrillEnvironment) -> None:
    from quorate.scripts.certificates.authority import Validity
    from quorate.scripts.certificates.certificate_directory import CertificateDirectory
    from quorate.scripts.certificates.holders import client_holder

    path = environment.local.cluster.directory / CERTIFICATES_NAME
    directory, validity = CertificateDirectory(path), Validity.of(_DAYS)
    probe = directory.issue(client_holder(_PROBE), validity)
    try:
        async with under_writes(environment):
            begun = environment.event("fault", "every process and the administrator get another certificate and key")
            for name in directory.names():
                directory.renew(name, validity)
            await _until_shown(environment, path, probe, "all show their new certificates")
        await environment.settle(max(begun, await restart_a_standby(environment)))
    finally:
        _remove(probe)


def _remove(probe: TlsPaths) -> None:
    for path in (probe.cert_file, probe.key_file):
        assert path is not None
        path.unlink(missing_ok=True)


DRILLS: Final = (
    Drill(
        "rotate-ca",
        "the CA is exchanged under writes: no write is refused, nobody is elected, and the old CA opens nothing",
        EXPECTED,
        rotate_ca,
        "destroys",
    ),
    Drill(
        "rotate-certificates",
        "every process gets another certificate and key under writes: no write is refused, nobody is elected",
        UNNOTICED,
        rotate_certificates,
        "destroys",
    ),
)
