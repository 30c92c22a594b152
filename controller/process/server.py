"""One controller process: its directory, its sockets, threads and signals, around what ``assembly`` puts together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack, ExitStack, closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from quorate.controller.api.kept_files import SHARED_SECRET_SETTING, KeptFile, secret_file
from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.background.shared import SharedWork
from quorate.controller.client.client import ControllerClient
from quorate.controller.connections.open_files import OF_A_CONTROLLER, places, spare_descriptors
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import OsRandom, ProcessFaults, new_uuid
from quorate.controller.engine.loop_scheduler import LoopScheduler
from quorate.controller.engine.quorum_controller import QuorumController
from quorate.controller.http.ports import Node
from quorate.controller.http.serving import HttpServer
from quorate.controller.identity.issuer.keys import KeysAddress
from quorate.controller.identity.secrets import Secrets, shown
from quorate.controller.logs.audit_reading import AuditReading
from quorate.controller.logs.reads import Reads
from quorate.controller.logs.refusals import Refusals
from quorate.controller.logs.write_log import Account, keep_account, tell_state
from quorate.controller.operations.bootstrap import bootstrap_records
from quorate.controller.process.assembly import ControllerParts, Environment, assemble
from quorate.controller.process.certificate_watch import CertificateWatch
from quorate.controller.process.composition import Machine
from quorate.controller.process.digest_watch import ControllerDigestWatch
from quorate.controller.process.process_life import Ending, in_background
from quorate.controller.process.quorum_parts import own_certificate_check, quorum_config, quorum_tls
from quorate.controller.process.registrar import Registrar
from quorate.controller.process.served_cluster import NodeFounding
from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_parts import controller_parts, log_config, tls_files
from quorate.controller.process.tracing.opening import open_traces
from quorate.controller.process.warm_up import make_models, warm_up
from quorate.metadata_log.cycle_collector import state_spared
from quorate.metadata_log.directory.directory import BOOTSTRAP_NAME, MetadataDirectory
from quorate.metadata_log.directory.reader import classify
from quorate.metadata_log.disk import RealDisk
from quorate.metadata_log.service_manager import tell_service_manager
from quorate.metadata_log.standstills import StandstillWatch
from quorate.quorum.host import QuorumListener
from quorate.quorum.runtime import QuorumRuntime
from quorate.quorum.storage.storage import NodeStorage
from quorate.quorum.transport.handshake import no_secret
from quorate.snapshots.checkpoints.whole_checkpoints import load_checkpoint

log = structlog.get_logger()

#: Requests under way get this long when the process is told to stop.
_HTTP_GRACE_S: Final = 2.0
#: After its start a process leaves the quorum this long to find a leader before it does anything on the side.
_SETTLED_S: Final = 0.2
_TOKEN_SECRET: Final = "tokens.secret_key_file"
_ISSUER_KEYS: Final = "keys of the issuer"


async def run_controller_process(settings: ControllerSettings) -> None:
    """Serve until SIGTERM or SIGINT, then hand leadership over by resigning, and close.

    Raises:
        QuorateError, OSError: the process cannot start; one sentence says why.
    """
    ending, faults = Ending(), ProcessFaults(Counters())
    asyncio.get_running_loop().set_exception_handler(faults.unhandled)
    with state_spared(), closing(StandstillWatch(faults.counters.standstills)):
        await serve(settings, faults, ending.is_asked_for, partial(tell_service_manager, "READY=1"))


async def serve(
    settings: ControllerSettings,
    faults: ProcessFaults,
    is_to_end: asyncio.Event,
    tell_started: Callable[[], None] = lambda: None,
) -> None:
    """A controller from its start until it is to end: what a process does, without what is the process's alone.

    ``tell_started``: called when it listens. A fatal fault goes to ``faults``, whatever that makes of it.

    Raises:
        QuorateError, OSError: it cannot start; one sentence says why.
    """
    async with AsyncExitStack() as stack:
        beside = await _start(settings, faults, stack)
        log.info("controller.started", node_id=settings.node_id, http=str(settings.http_bind))
        warn_of_openness(settings)
        work = partial(_work_when_settled, faults, *beside)
        on_the_side = asyncio.create_task(in_background("start", work, faults))
        stack.push_async_callback(_cancelled, on_the_side)
        tell_started()
        await is_to_end.wait()
        log.info("controller.stopping", node_id=settings.node_id)


def warn_of_openness(settings: ControllerSettings) -> None:
    """Say in the log what `access.insecure` leaves open to other machines."""
    if settings.http_bind.is_loopback:
        return
    if not settings.tls.is_on:
        what = "secrets and answers are readable on the way: set tls.cert_file, tls.key_file and tls.ca_files"
        log.warning("http.plaintext", http=str(settings.http_bind), why=what)
    if settings.access.authorizer == "none":
        what = "whoever has the shared secret may do everything: set access.authorizer and access.super_users"
        log.warning("http.no_authorizer", http=str(settings.http_bind), why=what)


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def make_ready(faults: ProcessFaults) -> None:
    """Load and make what the first writes and answers need, while the loop serves others."""
    await warm_up(LoopScheduler(faults), faults)
    for _ in make_models():
        await asyncio.sleep(0)


async def _work_when_settled(
    faults: ProcessFaults,
    registrar: Registrar,
    watch: ControllerDigestWatch,
    certificates: CertificateWatch,
    issuer_keys: KeysAddress | None,
) -> None:
    await asyncio.sleep(_SETTLED_S)
    await make_ready(faults)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(in_background("registration", registrar.run, faults))
        tasks.create_task(in_background("digest watch", watch.run, faults))
        tasks.create_task(in_background("certificate watch", certificates.run, faults))
        if issuer_keys is not None:
            asking = partial(issuer_keys.run, partial(tell_of_keys, issuer_keys, faults))
            tasks.create_task(in_background(_ISSUER_KEYS, asking, faults))


def tell_of_keys(keys: KeysAddress, faults: ProcessFaults) -> None:
    """Count an issuer's keys, and raise an alarm where something is wrong with them, or take it back."""
    faults.alarm(_ISSUER_KEYS, keys.trouble)
    faults.counters.issuer_keys, faults.counters.issuer_keys_refused = len(keys()), keys.failures


class _Secrets(NamedTuple):
    """Of the controllers. None: the settings name none."""

    shared: KeptFile[tuple[bytes, ...]] | None
    tokens: KeptFile[tuple[bytes, ...]] | None

    @classmethod
    def of(cls, settings: ControllerSettings) -> _Secrets:
        return cls(
            secret_file(settings.shared_secret_file), secret_file(settings.tokens.secret_key_file, _TOKEN_SECRET)
        )

    def by_setting(self) -> dict[str, KeptFile[Any] | None]:
        return {SHARED_SECRET_SETTING: self.shared, _TOKEN_SECRET: self.tokens}


def _keep_account(settings: ControllerSettings, controller: QuorumController) -> Account:
    is_logged = settings.logging.level == "debug"
    return keep_account(settings.directory, controller, is_logged=is_logged, has_reads=settings.audit.reads)


async def _start(
    settings: ControllerSettings, faults: ProcessFaults, stack: AsyncExitStack
) -> tuple[Registrar, ControllerDigestWatch, CertificateWatch, KeysAddress | None]:
    disk = RealDisk(stack.enter_context(spare_descriptors()), faults.counters.disk_syncs.note)
    directory = MetadataDirectory.open(disk, str(settings.directory), settings.node_id, settings.cluster_id)
    stack.callback(directory.close)
    secrets = _Secrets.of(settings)
    files = tls_files(settings, own_certificate_check(directory.meta.cluster_id, settings.node_id))
    parts = _parts(controller_parts(settings, directory.meta.cluster_id, secrets.tokens, secrets.shared), files)
    agreed = quorum_config(settings, directory)
    storage = NodeStorage.open(disk, directory.log_path, agreed, log_config(settings.log))
    # Whoever has it closes it: the runtime, once there is one, for only that knows when its threads are through.
    own_storage = stack.enter_context(ExitStack())
    own_storage.callback(storage.close)
    threads = SharedWork(settings.log.checkpoint_work_percent)

    fatal = partial(faults.fatal, f"controller {settings.node_id} must stop")

    def join(listener: QuorumListener) -> QuorumRuntime:
        tls = quorum_tls(files, agreed.cluster_id)
        runtime = QuorumRuntime(agreed, storage, listener, fatal, secrets=secrets.shared or no_secret, tls=tls)
        own_storage.pop_all()
        stack.push_async_callback(runtime.stop)
        return runtime

    def account(controller: QuorumController) -> tuple[AuditReading, Refusals, Reads]:
        stack.callback(controller.close)
        account = _keep_account(settings, controller)
        stack.callback(account.close)
        return account.audit, account.refusals, account.reads

    environment = Environment(
        machine=Machine(LoopScheduler(faults), faults, OsRandom(), new_uuid),
        counters=faults.counters,
        background=threads,
        load=lambda reader: load_checkpoint(classify(Path(reader.path))),
        connect=lambda urls: _client(urls, parts, secrets.shared, insecure=settings.access.insecure),
        join=join,
        keep_account=account,
    )
    assembly = assemble(parts, _founded(directory, disk), storage, environment)
    stack.callback(threads.close)
    stack.push_async_callback(assembly.client.close)
    stack.callback(tell_state(assembly.controller, assembly.node.broker_reports, storage.log).close)
    await assembly.quorum.start()
    server = await _listen(assembly.node, settings, files, stack)
    stack.push_async_callback(server.close)
    stack.callback(assembly.release)
    certificates = CertificateWatch(files, faults, faults.counters, secrets.by_setting() | parts.access.kept)
    return assembly.registrar, assembly.digest_watch, certificates, parts.access.issuer_keys


def _parts(parts: ControllerParts, files: TlsFiles | None) -> ControllerParts:
    """With what this process has."""
    api = replace(parts.api, connections_max=places(parts.api.connections_max, OF_A_CONTROLLER))
    return replace(parts, api=api, tls=None if files is None else files.as_node)


async def _listen(
    node: Node, settings: ControllerSettings, files: TlsFiles | None, stack: AsyncExitStack
) -> HttpServer:
    traces = open_traces(settings.tracing, settings.node_id, node.cluster_id)
    if traces is not None:
        stack.push_async_callback(traces.close)  # behind the last answer
        node = replace(node, traces=traces)
    host, port = settings.http_bind
    tls, wants = None if files is None else files.as_server, settings.tls.client_auth == "required"
    path = settings.http.unix_socket
    return await HttpServer.start(node, host, port, _HTTP_GRACE_S, tls=tls, wants_certificates=wants, local=path)


def _client(urls: list[str], parts: ControllerParts, secrets: Secrets | None, *, insecure: bool) -> ControllerClient:
    """Of the other controllers: the secret itself is shown where nobody has to know who asks, and else proves it."""
    seals = parts.access.seals
    if seals is None:
        return ControllerClient(urls, shared_secret=shown(secrets), tls=parts.tls, insecure=insecure)
    return ControllerClient(urls, seal=seals.seal, tls=parts.tls)


def _founded(directory: MetadataDirectory, disk: RealDisk) -> NodeFounding:
    meta, bootstrap = directory.meta, directory.bootstrap(disk)
    records = () if bootstrap is None else bootstrap_records(bootstrap, f"{directory.path}/{BOOTSTRAP_NAME}")
    return NodeFounding(meta.cluster_id, meta.generation, directory.is_short_of_space, records)
