"""Drills on certificates: they are exchanged under writes, and the CA too, or end; and nothing is restarted for it."""

from __future__ import annotations

import asyncio
import re
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_files import InvalidTlsFiles, TlsFiles, TlsPaths
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError, NotController
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME, admin_paths
from quorate.scripts.cluster.making import logs_directory
from quorate.scripts.cluster.members import LocalNode
from quorate.scripts.cluster.plan import ClusterError
from quorate.scripts.drills.certificate_probes import (
    PROBE,
    answer_at,
    kept,
    ports,
    probe_of,
    takers,
    until_not_taken,
    until_seen,
    until_shown,
    until_taken,
)
from quorate.scripts.drills.drill import Drill
from quorate.scripts.drills.environment import DrillBroken, DrillEnvironment
from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.drills.rotation import EXPECTED, UNNOTICED, restart_a_standby, under_writes

if TYPE_CHECKING:
    from quorate.scripts.certificates.certificate_directory import CertificateDirectory

_DAYS: Final = 30
#: A certificate that is to end is good for so long (s): time for everybody to read it.
_GOOD_FOR_S: Final = 10.0
_ASK_MS: Final = 2_000.0
_HAS_EXPIRED: Final = "certificate has expired"
#: Of the page of metrics.
_LEFT: Final = re.compile(r"^quorate_certificate_expiry_seconds (\S+)$", re.MULTILINE)
_ALARMS: Final = ("/v1/status?local=true", "/metrics")


def _directory(environment: DrillEnvironment) -> CertificateDirectory:
    from quorate.scripts.certificates.certificate_directory import CertificateDirectory  # slow to import

    return CertificateDirectory(environment.local.cluster.directory / CERTIFICATES_NAME)


async def rotate_ca(environment: DrillEnvironment) -> None:
    from quorate.scripts.certificates.authority import Validity

    directory, validity = _directory(environment), Validity.of(_DAYS)
    with probe_of(directory, validity) as probe:
        async with under_writes(environment):
            begun = environment.event("fault", "a second CA is trusted besides the first")
            directory.renew_authority(validity)
            old = TlsFiles(kept(probe, environment.workplace / "old-probe")).as_client()
            directory.renew(PROBE, validity)
            await until_taken(environment, probe, "all trust what the second CA issues")
            await _renew_all(environment, directory, probe, "all show certificates of the second CA")
            directory.retire()
            environment.event("fault", "the first CA is trusted no more")
            await until_not_taken(environment, old, "nobody takes what the first CA issued")
        await environment.settle(max(begun, await restart_a_standby(environment)))


async def rotate_certificates(environment: DrillEnvironment) -> None:
    from quorate.scripts.certificates.authority import Validity

    directory, validity = _directory(environment), Validity.of(_DAYS)
    with probe_of(directory, validity) as probe:
        async with under_writes(environment):
            begun = environment.event("fault", "every process and the administrator get another certificate and key")
            await _renew_all(environment, directory, probe, "all show their new certificates")
        await environment.settle(max(begun, await restart_a_standby(environment)))


async def _renew_all(
    environment: DrillEnvironment, directory: CertificateDirectory, probe: TlsPaths, what: str
) -> None:
    from quorate.scripts.certificates.authority import Validity

    for name in directory.names():
        directory.renew(name, Validity.of(_DAYS))
    await until_shown(environment, list(ports(environment)), directory.path, TlsFiles(probe).as_client(), what)


async def expire_certificate(environment: DrillEnvironment) -> None:
    """A standby's and an operator's end; everybody else's are good."""
    from quorate.scripts.certificates.authority import Validity

    directory, node = _directory(environment), environment.controllers[await environment.standby()]
    pids = _pids(environment)
    ends = datetime.now(UTC) + timedelta(seconds=_GOOD_FOR_S)
    short, good = Validity(ends - timedelta(hours=1), ends), Validity.of(_DAYS)
    with probe_of(directory, short) as operator:
        shown = TlsFiles(operator).as_client()
        async with under_writes(environment):
            directory.renew(node.name, short)
            await until_shown(environment, [node.name], directory.path, shown, f"{node.name} shows one that ends soon")
            await asyncio.sleep((ends - datetime.now(UTC)).total_seconds())
            ended = environment.event("fault", f"the certificates of {node.name} and of an operator have ended")
            await until_not_taken(environment, shown, "no process takes the operator's, nor the operator that one's")
            environment.measure("told_ms", (await _until_told(environment, node, operator, shown) - ended) * 1000)
            renewed = environment.event("repair", "both are renewed: other files, and no restart")
            for name in (node.name, PROBE):
                directory.renew(name, good)
            await until_taken(environment, operator, "all processes and the operator take each other's again")
            await _until_calm(environment, node)
        environment.measure("restarted", len(pids ^ _pids(environment)))
        await environment.settle(max(renewed, await restart_a_standby(environment)))


def _pids(environment: DrillEnvironment) -> set[int | None]:
    return {process.pid for process in environment.local.cluster.processes}


async def _until_told(
    environment: DrillEnvironment, node: LocalNode, operator: TlsPaths, shown: ssl.SSLContext
) -> float:
    """Until all who are to say it say that both have ended: errors, a log, the status and the metric; the moment."""
    (other, *_) = (one for one in environment.controllers.values() if one.id != node.id)
    log = logs_directory(environment.local.cluster.directory) / f"{other.name}.log"
    assert environment.cluster.tls is not None
    of_node, untold = environment.cluster.tls, ["all"]

    async def look() -> bool | None:
        await takers(environment, shown)  # of several handshakes the log tells the last one's end
        left_s, status = await _alarms(environment, node)
        told = {
            "the error of who asks the node": _HAS_EXPIRED in await _refusal(node, of_node),
            "the error of the operator": _HAS_EXPIRED in _own_refusal(operator),
            f"the log of {other.name}": _HAS_EXPIRED in log.read_text(encoding="utf-8", errors="replace"),
            "the status of the node": "it has expired at" in status,
            "the metric of the node": left_s < 0,
        }
        untold[:] = [who for who, is_told in told.items() if not is_told]
        return not untold or None

    try:
        return await until_seen(environment, look, "errors, log, status and metric say that they have expired")
    except ClusterError as error:
        raise DrillBroken(f"{error}: not said by {', '.join(untold)}") from error


def _own_refusal(paths: TlsPaths) -> str:
    """The sentence with which whoever has these files is told that they cannot be used; empty: they can."""
    try:
        TlsFiles(paths)
    except InvalidTlsFiles as error:
        return str(error)
    return ""


async def _until_calm(environment: DrillEnvironment, node: LocalNode) -> None:
    async def look() -> bool | None:
        left_s, reasons = await _alarms(environment, node)
        return (left_s > 0 and "certificate" not in reasons) or None

    await until_seen(environment, look, "neither status nor metric says anything of it")


async def _alarms(environment: DrillEnvironment, node: LocalNode) -> tuple[float, str]:
    """The seconds that are left by a node's metric, and what is wrong by its status.

    Asked by somebody who does not look at its certificate.
    """
    blind = TlsFiles(admin_paths(environment.local.cluster.directory)).as_client()
    blind.check_hostname, blind.verify_mode = False, ssl.CERT_NONE
    status, metrics = [await answer_at(ports(environment)[node.name], blind, path) for path in _ALARMS]
    found = None if metrics is None else _LEFT.search(metrics.body)
    if status is None or found is None:
        raise NotController(None, f"{node.name} does not answer")
    return float(found[1]), status.body


async def _refusal(node: LocalNode, tls: TlsContexts) -> str:
    """The sentence with which a client with these certificates is not served; empty: it is."""
    url = node.url or ""
    async with ControllerClient([url], tls=tls) as client:
        try:
            await client.status_of(url, _ASK_MS)
        except (ApiError, NotSent, NoAnswer) as error:
            return str(error)
    return ""


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
    Drill(
        "expired-certificate",
        "a standby's and an operator's certificates end: both are refused and told of, and renewed without a restart",
        (
            *EXPECTED,
            Expectation(name="told_ms", meaning="until errors, log, status and metric say it, ms", at_most=15_000),
            Expectation(name="restarted", meaning="processes that were restarted for it", at_most=0),
        ),
        expire_certificate,
        "destroys",
    ),
)
