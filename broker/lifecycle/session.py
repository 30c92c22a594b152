"""The asyncio shell around one broker's lifecycle: sends what the state machine says, feeds back what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import structlog

from quorate.broker.controllers.controller_rpc import ControllerRpc
from quorate.broker.lifecycle.identity import DIRECTORIES_LEVEL, BrokerIdentity
from quorate.broker.lifecycle.lifecycle import BrokerLifecycle, Command, SendHeartbeat, SendRegistration
from quorate.broker.lifecycle.transitions import LifecycleState
from quorate.broker.own_tasks import OwnTasks
from quorate.controller.protocol import BrokerHeartbeatRequest, UndeletedReplicas
from quorate.metadata_log.errors import ApiError, OutcomeUnknown, QuorateError
from quorate.metadata_log.ids import Uuid
from quorate.snapshots.table.cluster import BrokerRegistration

log = structlog.get_logger(__name__)


class BrokerSession:
    """One broker of this process. ``run`` owns the lifecycle; the rest is called on the same event loop.

    Args:
        applied_offset: last offset that the image contains, asked for when a heartbeat leaves.
        undeleted: what it still has of deleted topics, asked for likewise.
        failed_directories: log directories that failed since it registered, asked for likewise.
        on_change: called after every change of the lifecycle's state.
        on_lease: called when its session may be over, and when it counts on one again (``lifecycle.lease``).
    """

    def __init__(
        self,
        identity: BrokerIdentity,
        lifecycle: BrokerLifecycle,
        rpc: ControllerRpc,
        cluster_id: str,
        applied_offset: Callable[[], int],
        undeleted: Callable[[], UndeletedReplicas | None],
        failed_directories: Callable[[], Sequence[Uuid]],
        now_ms: Callable[[], float],
        on_change: Callable[[], None],
        on_lease: Callable[[bool], None],
    ) -> None:
        self.identity = identity
        self.lifecycle = lifecycle
        self._rpc = rpc
        self._cluster_id = cluster_id
        self._applied_offset = applied_offset
        self._undeleted = undeleted
        self._failed_directories = failed_directories
        self._now_ms = now_ms
        self._on_change = on_change
        self._on_lease = on_lease
        self._told_lease = False
        self._wake = asyncio.Event()
        self._amended: BrokerRegistration | None = None
        self._registered: BrokerRegistration | None = None
        self._told_state: LifecycleState | None = None
        self._log = log.bind(broker=identity.broker_id)

    async def run(self) -> None:
        """Live until the lifecycle is over.

        Raises:
            TaskCancelled: a request was cancelled, by neither this nor its own task's cancellation.
        """
        async with OwnTasks() as requests:
            request: asyncio.Task[None] | None = None
            while True:
                self._wake.clear()
                self._look_at_directories()
                command = self.lifecycle.next_command(self._now_ms())
                if command is not None:
                    request = requests.create_task(
                        self._execute(command), f"a request of broker {self.identity.broker_id}"
                    )
                self._tell()
                self._tell_lease()
                if self.lifecycle.is_over:
                    if request is not None:
                        requests.cancel(request)  # whatever it brings would change nothing
                    return
                await self._sleep()

    def ready_to_unfence(self) -> None:
        """It could serve."""
        self.lifecycle.ready_to_unfence(self._now_ms())
        self._wake.set()

    def hold_unfencing(self) -> None:
        """It can serve no more: the controllers are to fence it."""
        self.lifecycle.hold_unfencing(self._now_ms())
        self._wake.set()

    def begin_shutdown(self) -> None:
        """Leave in a controlled way; asked twice, at once."""
        self.lifecycle.begin_shutdown(self._now_ms())
        self._wake.set()

    @property
    def failed_directories(self) -> Sequence[Uuid]:
        """Of those that it registered with, the ones that failed since."""
        failed = self._failed_directories()
        return [directory for directory in self.identity.directories if directory in failed]

    def cordon(self, directories: Collection[Uuid]) -> None:
        """These of its directories take no new replicas from now on, the others do (KIP-1066).

        It holds over starts: the registration says it.
        """
        cordoned = tuple(one for one in self.identity.directories if one in directories)
        self.identity = replace(self.identity, cordoned_directories=cordoned)
        self.lifecycle.speak_at_once(self._now_ms())
        self._wake.set()

    def directories_changed(self) -> None:
        """Others have failed."""
        self._wake.set()

    def saw_registration(self, registration: BrokerRegistration, metadata_version: int) -> None:
        """The newest image has this registration under the broker's id.

        One that was made when the metadata knew no directories is made anew when they do, or its replicas would stay
        in none (Kafka's ``BrokerRegistrationTracker``).
        """
        self.lifecycle.saw_registration(registration.epoch, registration.incarnation_id)
        self._registered = registration
        is_own = registration.epoch == self.lifecycle.broker_epoch
        lacks_directories = metadata_version >= DIRECTORIES_LEVEL and not registration.directories
        if is_own and lacks_directories and registration is not self._amended:
            self._amended = registration
            self.lifecycle.register_again(self._now_ms())
            self._wake.set()
        if self.lifecycle.is_over:
            self._wake.set()

    async def _sleep(self) -> None:
        wake_ms = self.lifecycle.next_wake_ms()
        if self._told_lease:
            valid_until_ms = self.lifecycle.lease.valid_until_ms
            wake_ms = valid_until_ms if wake_ms is None else min(wake_ms, valid_until_ms)
        try:
            async with asyncio.timeout(None if wake_ms is None else max(0.0, wake_ms - self._now_ms()) / 1000):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _execute(self, command: Command) -> None:
        try:
            if isinstance(command, SendRegistration):
                await self._register(command)
            else:
                await self._heartbeat(command)
        except OutcomeUnknown as error:
            self.lifecycle.failed(self._now_ms(), None, str(error))
        except ApiError as error:
            self.lifecycle.failed(self._now_ms(), error.code, error.message)
        except QuorateError as error:
            self.lifecycle.failed(self._now_ms(), None, str(error))
        finally:
            self._wake.set()

    async def _register(self, command: SendRegistration) -> None:
        request = self.identity.request(self._cluster_id, command.previous_epoch, self.failed_directories)
        reply = await self._rpc.register_broker(request)
        self.lifecycle.answered_registration(self._now_ms(), reply.broker_epoch)
        self._log.info("broker.registered", broker_epoch=reply.broker_epoch)

    async def _heartbeat(self, command: SendHeartbeat) -> None:
        failed = self.failed_directories
        reply = await self._rpc.broker_heartbeat(
            BrokerHeartbeatRequest(
                broker_id=self.identity.broker_id,
                broker_epoch=command.broker_epoch,
                current_metadata_offset=self._applied_offset(),
                want_fence=command.wants_fence,
                want_shut_down=command.wants_shutdown,
                offline_log_dirs=list(failed),
                cordoned_log_dirs=self._cordoned_unless_known(),
                undeleted=self._undeleted(),
            )
        )
        self.lifecycle.answered_heartbeat(
            self._now_ms(),
            is_caught_up=reply.is_caught_up,
            is_fenced=reply.is_fenced,
            should_shut_down=reply.should_shut_down,
            session_ms=reply.session_ms,
            told_failed=failed,
        )

    def _cordoned_unless_known(self) -> list[Uuid] | None:
        """None where the registration says it: heartbeats that say nothing new are answered at less cost."""
        cordoned = self.identity.cordoned_directories
        known = self._registered
        return None if known is None or set(cordoned) == set(known.cordoned_directories) else list(cordoned)

    def _look_at_directories(self) -> None:
        failed = self.failed_directories
        if failed and len(failed) == len(self.identity.directories):
            self.lifecycle.lost_all_directories()
        else:
            self.lifecycle.directories_failed(self._now_ms(), failed)

    def _tell_lease(self) -> None:
        is_valid = self.lifecycle.lease.is_valid(self._now_ms())
        if is_valid is not self._told_lease:
            self._told_lease = is_valid
            if not is_valid:
                self._log.warning("broker.session_lost", trouble=self.lifecycle.trouble)
            self._on_lease(is_valid)

    def _tell(self) -> None:
        state = self.lifecycle.state
        if state is self._told_state:
            return
        self._told_state = state
        if state is LifecycleState.FAILED:
            self._log.error("broker.failed", reason=self.lifecycle.failure)
        else:
            self._log.info("broker.state", state=state.value, trouble=self.lifecycle.trouble)
        self._on_change()
