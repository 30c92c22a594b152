"""Properties that must hold after every event: the quorum's promises, and those of controllers and brokers above."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from quorate.controller.engine.interfaces import DecidedWrite
from quorate.metadata_log.batches.batch import parse_header
from quorate.scripts.simulation.quorum.checks import Checks
from quorate.scripts.simulation.system.oracle import ReplayedLog
from quorate.scripts.simulation.system.said import SaidLevel
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import ImageDigest, digest_image

if TYPE_CHECKING:
    from quorate.scripts.simulation.system.broker_process import BrokerProcess
    from quorate.scripts.simulation.system.controller_process import SimulatedController
    from quorate.scripts.simulation.system.world import SystemWorld

#: Shortest virtual time between two comparisons of one process's state: a digest costs more than all else that it did.
_COMPARED_SECONDS: Final = 0.06


#: Requests whose answer, where nothing is written, may be that of a controller that was deposed.
_HEARTBEATS: Final = ("broker_heartbeat", "controlled_shutdown")


class Decided(NamedTuple):
    """On what a request was decided."""

    node_id: int
    epoch: int
    #: Exclusive end of the head, with what the request wrote.
    end_offset: int
    #: Exclusive end of what was committed then, whoever knew of it; None: nothing is claimed of that.
    committed_end: int | None


class SystemChecks(Checks):
    """The history of one run, replayed record by record beside the nodes."""

    _world: SystemWorld

    def __init__(self, world: SystemWorld) -> None:
        super().__init__(world)
        #: The committed log as bytes say it, by one reader who makes no use of runs, pages or pieces.
        self.reference = ReplayedLog()
        #: What each request wrote, by request id. One that was sent twice is known by where it was decided last.
        self._decided: dict[str, Decided] = {}
        #: Whether what is said in a broker's name was said by its process; else its process need not know of it.
        self.brokers_speak_for_themselves = True
        #: When a process's state was compared last.
        self._compared_at: dict[str, float] = {}
        self.said = SaidLevel()
        self.isr_entries = 0
        self.sessions_ended = 0
        self.states_compared = 0
        self.broker_images_compared = 0

    def committed(self, batch: bytes) -> None:
        """A node was handed a committed batch."""
        header = parse_header(batch)
        if header.end_offset <= self.reference.end_offset:
            return
        try:
            self.reference.add(batch)
        except AssertionError as error:
            self._world.violation(f"the committed log breaks an invariant at offset {header.base_offset}: {error}")
        for member in self.reference.take_entered():
            self.isr_entries += 1
            if self.brokers_speak_for_themselves and not self.said.has_said(member):
                self._world.violation(
                    f"{member} entered an ISR at offset {header.base_offset} and never said to be level"
                )
        for session in self.reference.take_ended():
            self.sessions_ended += 1
            left_ms = self._world.broker(session.broker_id).counts_on_session_ms(session.broker_epoch)
            if self.brokers_speak_for_themselves and left_ms > 0:
                self._world.violation(
                    f"{session} was ended at offset {header.base_offset}, and its process counts on it for {left_ms} ms"
                )

    def counted_on(self, broker: BrokerProcess) -> None:
        """A broker counts on its session: then it knows who was elected when it was fenced last."""
        session, known_end = broker.session_and_known_end()
        if session is not None and known_end < self.reference.unfenced_ends.get(session, 0):
            self._world.violation(f"{session} is counted on, and its process knows of nothing from {known_end} on")

    def loaded_checkpoint(self, owner: SimulatedController, end_offset: int, epoch: int) -> None:
        """A controller starts from a checkpoint; its state is compared like any other."""
        self._world.checkpoints_installed += 1
        if end_offset not in self.history or self.history[end_offset][1] != epoch:
            self._world.violation(f"node {owner.node_id} loaded a checkpoint at {end_offset} that nobody committed")

    def state_of(self, owner: SimulatedController) -> None:
        """A controller's stable state is what the log says."""
        controller = owner.controller
        said = f"controller {owner.node_id}"
        if controller.applied_offset > self.reference.end_offset:
            self._world.violation(f"{said}: it applied up to {controller.applied_offset}, more than can be replayed")
            return
        if self._is_due(said) or self._world.is_healed:
            owner.digest = self._compare(said, controller.stable, owner.digest)
            self.states_compared += 1
        expected = self.reference.states[controller.applied_offset].stable.provenance.end_offset
        if controller.stable.provenance.end_offset != expected:
            self._world.violation(f"{said}: its stable state ends at {controller.stable.provenance.end_offset}")

    def broker_image(self, broker_id: int, image: MetadataImage, earlier: ImageDigest) -> ImageDigest:
        """A broker published an image."""
        said = f"broker {broker_id}"
        if not (self._is_due(said) or self._world.is_healed):
            return earlier
        self.broker_images_compared += 1
        return self._compare(said, image, earlier)

    def _is_due(self, said: str) -> bool:
        """A state that differs goes on to differ: it is enough to look often."""
        now = self._world.scheduler.now
        if now - self._compared_at.get(said, -1.0) < _COMPARED_SECONDS:
            return False
        self._compared_at[said] = now
        return True

    def _compare(self, said: str, image: MetadataImage, earlier: ImageDigest) -> ImageDigest:
        if image is earlier.image:
            return earlier
        end = image.provenance.end_offset
        if end > self.reference.end_offset:
            self._world.violation(f"{said}: a state at {end}, and only {self.reference.end_offset} is committed")
            return earlier
        digest = digest_image(image, earlier)
        if digest.value != self.reference.digest_of_stable(end):
            self._world.violation(f"{said}: its state at {end} is not what the log says")
        return digest

    # --- answers -------------------------------------------------------------------------------------

    def decided(self, owner: SimulatedController, write: DecidedWrite) -> None:
        """A request was decided, or refused: it may be answered once what it was decided on is what the log says."""
        assert write.origin is not None
        is_steady = write.name in _HEARTBEATS and write.error is None and write.end_offset == write.base_offset
        committed_end = None if is_steady else self.reference.end_offset
        decided = Decided(owner.node_id, owner.controller.epoch, write.end_offset, committed_end)
        self._decided[write.origin.request_id] = decided

    def answered(self, request_id: str, *, is_claim: bool) -> None:
        """An answer leaves a controller. ``is_claim``: it says what was done, or how things are.

        What it was decided on must be in the log, and all that was committed by then must be in what it was decided
        on: one who was deposed would miss what its successor wrote. Heartbeats that change nothing need not know.
        """
        decided = self._decided.pop(request_id, None)
        if decided is None or not is_claim:
            return
        end, before, epochs = decided.end_offset, decided.committed_end, self.reference.epochs
        if end > self.reference.end_offset:
            self._world.violation(f"{request_id} was answered before offset {end} was committed")
        elif end and epochs[end - 1] > decided.epoch:
            self._world.violation(f"{request_id} was answered, and what it wrote below {end} is gone")
        elif before is not None and (before > end or (before and epochs[before - 1] > decided.epoch)):
            self._world.violation(
                f"{request_id} was answered by controller {decided.node_id} out of epoch {decided.epoch} up to {end},"
                f" and epoch {epochs[before - 1]} had committed up to {before} before it was decided"
            )
