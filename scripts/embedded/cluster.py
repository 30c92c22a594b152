"""Controllers of one quorum, each a task in place of a process: the same parts, real files, loopback sockets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from quorate.broker.raised_faults import RaisedFaults
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_files import TlsPaths
from quorate.controller.client.client import DEFAULT_TIMEOUT_MS, ControllerClient
from quorate.controller.process.server import serve
from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.certificates.holders import CertificateError, CertificateHolder, broker_holder, client_holder
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME, admin_tls, node_paths
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.local import controller_settings
from quorate.scripts.cluster.making import Ports, make_planned, plan_controllers
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.cluster.ports import LOOPBACK, held_ports
from quorate.scripts.embedded.faults import ControllerFault, EmbeddedFaults

_SIZES: Final = (1, 3)
#: Few enough that no process has to be let open more files than it may anyway.
_CONNECTIONS_MAX: Final = 256

#: Longer than a test lasts.
_CERTIFICATE_DAYS: Final = 30

#: What a setting may be given as: a TOML value, or a path.
Setting = bool | int | str | Path


class InvalidCluster(QuorateError, ValueError):
    """No such cluster can be, or it has no such controller. Names the value and the rule."""


class WrongState(QuorateError, RuntimeError):
    """A controller is to start that runs, or to stop that does not."""


class EmbeddedCluster:
    """Made by ``cluster``. Its controllers are numbered from 0."""

    def __init__(
        self, directory: Path, plan: ClusterPlan, settings: Mapping[str, Setting], faults: RaisedFaults
    ) -> None:
        """See ``cluster``.

        Raises:
            InvalidSettings: of a name that no setting has, or a value against its rule.
        """
        #: Base URL of each controller's HTTP API, by its number.
        self.urls = plan.controller_urls
        #: What the controllers keep on disk.
        self.directory = directory
        #: With which the controllers are asked as their administrator; None: they speak no TLS.
        self.tls: TlsContexts | None = admin_tls(directory) if plan.is_secured else None
        self._plan = plan
        self._faults = faults
        self._settings = [_settings(directory, plan, one.id, settings) for one in plan.controllers]
        self._running: dict[int, _Running] = {}
        self._clients: list[ControllerClient] = []

    @property
    def running(self) -> frozenset[int]:
        """Numbers of the controllers that run."""
        return frozenset(number for number, one in self._running.items() if not one.is_over)

    def client(self, *, timeout_ms: float = DEFAULT_TIMEOUT_MS) -> ControllerClient:
        """A client of all controllers, closed with the cluster if it is not before; with TLS their administrator."""
        client = ControllerClient(self.urls, timeout_ms=timeout_ms, tls=self.tls)
        self._clients.append(client)
        return client

    def client_certificate(self, name: str) -> TlsPaths:
        """The certificate of a client, issued when it is first asked for: the principal ``User:CN=name``.

        Raises:
            InvalidCluster: the controllers speak no TLS, or it is no name for a client.
        """
        return self._issued(lambda: client_holder(name))

    def broker_certificate(self, *ids: int) -> TlsPaths:
        """The certificate of a process that plays these brokers, served at 127.0.0.1; issued when first asked for.

        Raises:
            InvalidCluster: the controllers speak no TLS, or no broker is named.
        """
        if not ids:
            raise InvalidCluster("of which brokers? Name one at least")
        return self._issued(lambda: broker_holder(self._plan.cluster_id, ids, (LOOPBACK,)))

    def _issued(self, holder: Callable[[], CertificateHolder]) -> TlsPaths:
        if self.tls is None:
            raise InvalidCluster("this cluster has no certificates: make it with tls=True")
        # Of use to few tests, and slow to load.
        from quorate.scripts.certificates.authority import Validity
        from quorate.scripts.certificates.certificate_directory import CertificateDirectory

        try:
            wanted = holder()
            paths = node_paths(self.directory, wanted.name)
            if paths.cert_file is None or not paths.cert_file.exists():
                CertificateDirectory(self.directory / CERTIFICATES_NAME).issue(wanted, Validity.of(_CERTIFICATE_DAYS))
        except CertificateError as error:
            raise InvalidCluster(str(error)) from error
        return paths

    async def start(self, controller: int) -> None:
        """Start a controller that was stopped; it listens when this returns, and follows or leads a little later.

        Raises:
            InvalidCluster: there is no such controller. WrongState: it runs.
            QuorateError, OSError: it cannot start; one sentence says why.
        """
        self._require(controller)
        while (before := self._running.get(controller)) is not None:
            if not before.is_over:
                raise WrongState(f"controller {controller} runs already: stop it before you start it again")
            await self._end(controller, before)
        running = self._running[controller] = _Running(self._settings[controller], self._faults)
        try:
            await running.started()
        except BaseException:
            await self._end(controller, running)
            raise

    async def stop(self, controller: int) -> None:
        """Stop a controller in order, as SIGTERM does: a leader resigns. What it has on disk stays for ``start``.

        Once begun it is done: a cancellation meanwhile is raised when nothing of the controller is left.

        Raises:
            InvalidCluster: there is no such controller. WrongState: it does not run.
        """
        self._require(controller)
        running = self._running.get(controller)
        if running is None:
            raise WrongState(f"controller {controller} does not run: it was stopped before")
        await self._end(controller, running)

    async def wait_until_led(self, timeout_ms: float = DEFAULT_TIMEOUT_MS) -> None:
        """Wait until a majority has a leader that answers.

        Raises:
            NotController: there was none in that time.
        """
        async with ControllerClient(self.urls, timeout_ms=timeout_ms, tls=self.tls) as client:
            await client.describe_features(is_linearizable=True)

    async def close(self) -> None:
        """Stop what runs, and close all clients; a cancellation meanwhile is raised afterwards."""
        closing = asyncio.create_task(self._close())
        await _to_its_end(closing)
        closing.result()

    async def _close(self) -> None:
        for client in self._clients:
            await client.close()
        await asyncio.gather(*(self._end(controller, one) for controller, one in self._running.items()))

    async def _end(self, controller: int, running: _Running) -> None:
        """Known until nothing of it is left: who starts the next one before that finds its directory in use."""
        try:
            await running.ended()
        finally:
            if self._running.get(controller) is running:
                del self._running[controller]

    def _require(self, controller: int) -> None:
        if type(controller) is not int or not 0 <= controller < len(self._settings):
            last = len(self._settings) - 1
            raise InvalidCluster(f"there is no controller {controller!r}: they are numbered from 0 to {last}")


@asynccontextmanager
async def cluster(
    controllers: int = 1, *, settings: Mapping[str, Setting] | None = None, tls: bool = False
) -> AsyncIterator[EmbeddedCluster]:
    """A new quorum for the time of a block, led when the block begins; nothing is left of it afterwards.

    Args:
        controllers: 1, or 3 for tests that stop some.
        settings: of all controllers, by the names of docs/configuration.md: ``{"brokers.session_timeout_ms": 500}``.
            What the environment says of controllers is not looked at.
        tls: whether they speak TLS, with certificates made for this cluster, and let in whom they know by them
            (``access.authorizer``): brokers, and the principals that ``acls`` of the administrator allow something.

    Raises:
        InvalidCluster: another number. InvalidSettings: an unknown name, or a value against its rule.
        ControllerFault: a controller met a fault that would have ended its process. The block is cancelled for it.
    """
    if type(controllers) is not int or controllers not in _SIZES:
        raise InvalidCluster(f"a cluster has 1 controller or 3, not {controllers!r}: with 2 it stops when either does")
    if settings is not None and not isinstance(settings, Mapping):
        raise InvalidSettings(f"settings must be a mapping of names to values, not {type(settings).__name__}")
    faults = RaisedFaults()
    with TemporaryDirectory(prefix="quorate-") as place, held_ports(2 * controllers) as ports:
        directory = Path(place)
        planned = plan_controllers(range(controllers), Ports.of(ports))
        plan = ClusterPlan(cluster_id=new_id(), controllers=planned, is_secured=tls)
        make_planned(directory, plan)
        made = EmbeddedCluster(directory, plan, settings or {}, faults)
        try:
            async with faults:
                for number in range(controllers):
                    await made.start(number)
                await made.wait_until_led()
                yield made
        finally:
            await made.close()
        faults.check()


class _Running:
    """One controller from its start to its end."""

    def __init__(self, settings: ControllerSettings, faults: RaisedFaults) -> None:
        self._is_to_end = asyncio.Event()
        self._has_started = asyncio.Event()

        def tell(fault: ControllerFault) -> None:
            self._is_to_end.set()
            faults.note(fault)

        own = EmbeddedFaults(settings.node_id, tell)
        self._task = asyncio.create_task(serve(settings, own, self._is_to_end, self._has_started.set))

    @property
    def is_over(self) -> bool:
        """Whether it was told to end, or a fault stopped it."""
        return self._is_to_end.is_set()

    async def started(self) -> None:
        """Wait until it listens. Raises as ``serve``."""
        hearing = asyncio.create_task(self._has_started.wait())
        try:
            await asyncio.wait([self._task, hearing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            hearing.cancel()
        if not self._has_started.is_set():
            await self._task

    async def ended(self) -> None:
        """End it, and wait until nothing of it is left."""
        self._is_to_end.set()
        await _to_its_end(self._task)


async def _to_its_end(task: asyncio.Task[None]) -> None:
    """Wait until a task is over, however it ends; who is cancelled meanwhile hears of it only then."""
    cancellation: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancellation = error
    if cancellation is not None:
        raise cancellation


def _settings(directory: Path, plan: ClusterPlan, number: int, wanted: Mapping[Any, Any]) -> ControllerSettings:
    """The settings that a process would be told: a settings file, and those that somebody sets on top of it."""
    planned = next(one for one in plan.controllers if one.id == number)
    for name, value in wanted.items():
        if not isinstance(name, str) or not isinstance(value, Setting):
            found = f"{type(name).__name__} with {type(value).__name__}"
            raise InvalidSettings(f"{name!r} cannot be set so: a name as text with bool, int, str or Path, not {found}")
        if "." not in name:
            raise InvalidSettings(f"{name!r} cannot be set here: settings are named group.name")
    overrides = {"http.connections_max": _CONNECTIONS_MAX, **wanted}
    text = controller_settings(directory, plan, planned)
    file = directory / f"controller-{number}.toml"
    file.write_text(str(text), encoding="utf-8")
    return load_settings(
        ControllerSettings, file, [f"{name}={_toml(value)}" for name, value in overrides.items()], environment={}
    )


def _toml(value: Setting) -> str:
    return json.dumps(value) if isinstance(value, bool | int) else str(value)
