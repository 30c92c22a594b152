"""One broker process: what is assembled, on this machine, with its HTTP API and its signals."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import structlog

from quorate.broker.assembly import assemble
from quorate.broker.host import BrokerHost, BrokerReadiness
from quorate.broker.http.certificate import OwnCertificate
from quorate.broker.http.http_api import ServedTls
from quorate.broker.machine import on_this_machine
from quorate.broker.publisher import MetadataPublisher
from quorate.broker.replicas.manager import ReplicaManager
from quorate.broker.settings import BrokerSettings
from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.identity.secrets import shown
from quorate.metadata_log.cycle_collector import state_spared
from quorate.metadata_log.service_manager import is_service, tell_service_manager
from quorate.metadata_log.standstills import StandstillWatch

log = structlog.get_logger(__name__)


async def run_broker_process(
    settings: BrokerSettings,
    publishers: Sequence[MetadataPublisher] = (),
    replicas: ReplicaManager | None = None,
) -> list[BrokerReadiness]:
    """Play the brokers of ``settings`` until all of them are over, or a signal made them leave. How each of them ended.

    SIGTERM and SIGINT begin a controlled shutdown; the second one ends it at once.

    Args:
        replicas: what decides who is in sync; None: the rehearsal's model, which moves no data. A service gives its
            own (``broker.replicas.service.ServiceReplicas``).

    Raises:
        QuorateError: the process could not start, or must not go on (see ``BrokerHost.run``, ``BrokerHttp.start``).
    """
    with state_spared():
        return await _play(settings, publishers, replicas)


async def _play(
    settings: BrokerSettings, publishers: Sequence[MetadataPublisher], replicas: ReplicaManager | None
) -> list[BrokerReadiness]:
    files, secrets = settings.tls.load(), settings.load_secrets()
    async with on_this_machine(settings, shown(secrets), files) as environment:
        assembly = assemble(settings, environment, publishers, replicas, secrets)
        if is_service():
            assembly.host.on_change = TellWhenReady(assembly.host)
        tls = tls_of_http(settings, files)
        endpoint = await assembly.http.start(settings.http.host, settings.http.port, tls)
        try:
            with _stop_signals(assembly.host), closing(StandstillWatch(assembly.http.standstills)):
                await assembly.run(endpoint, *([] if tls is None else [tls.own]))
        finally:
            await assembly.http.stop()
        return assembly.host.readiness()


class TellWhenReady:
    """Tells the service manager once that every broker of the process runs. Called at each change of one of them."""

    def __init__(self, host: BrokerHost) -> None:
        self._host = host
        self._is_told = False

    def __call__(self) -> None:
        if not self._is_told and self._host.is_ready:
            self._is_told = True
            tell_service_manager("READY=1")


def tls_of_http(settings: BrokerSettings, files: TlsFiles | None) -> ServedTls | None:
    """The TLS that the HTTP API speaks; None: none."""
    if files is None or not files.is_server:
        return None
    return ServedTls(files.as_server, settings.tls.client_auth == "required", OwnCertificate(files, time.time))


@contextmanager
def _stop_signals(host: BrokerHost) -> Iterator[None]:
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        log.info("process.signal", signal=number.name)
        tell_service_manager("STOPPING=1")
        host.request_stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop, number)
    try:
        yield
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)
