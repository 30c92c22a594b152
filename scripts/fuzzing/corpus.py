"""Valid inputs: what a small cluster in virtual time wrote to disk, sent between nodes and was asked."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.metadata_log.batches.batch import parse_header
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId
from quorate.metadata_log.directory.quorum_state import QUORUM_STATE_NAME
from quorate.scripts.simulation.quorum.host import DIRECTORY
from quorate.scripts.simulation.system.http_wire import WireRequest
from quorate.scripts.simulation.system.scenarios.stage import SystemStage
from quorate.scripts.simulation.system.story import listening
from quorate.scripts.simulation.system.workload import AdminClient
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from quorate.snapshots.digest import DIGEST_BYTES
from quorate.snapshots.image_digest import digest_image

_ASKED = (
    AdminClient.configure,
    AdminClient.add_partitions,
    AdminClient.reassign,
    AdminClient.elect,
    AdminClient.read_topic,
    AdminClient.look,
    AdminClient.speak_as_a_dead_broker,
    AdminClient.unregister,
    AdminClient.create_topics,
    AdminClient.swap_label,
    AdminClient.read_label,
    AdminClient.delete_topic,
)


@dataclass(slots=True)
class Corpus:
    """By kind."""

    segments: list[bytes] = field(default_factory=list)
    #: The files beside a segment, by path.
    beside: dict[str, bytes] = field(default_factory=dict)
    segment_path: str = ""
    checkpoints: list[bytes] = field(default_factory=list)
    checkpoint_id: CheckpointId = field(default_factory=lambda: CheckpointId(0, 0))
    #: Of the state that the checkpoint holds.
    digest: bytes = bytes(DIGEST_BYTES)
    election_states: list[bytes] = field(default_factory=list)
    frames: list[bytes] = field(default_factory=list)
    requests: list[WireRequest] = field(default_factory=list)


def make_corpus() -> Corpus:
    """Always the same one."""
    stage, corpus = SystemStage(1, None), Corpus()
    seen: set[bytes] = set()

    def keep(source: int, target: int, payload: bytes) -> bool:
        if payload[:2] not in seen or len(corpus.frames) < 200:
            seen.add(payload[:2])
            corpus.frames.append(payload)
        return False

    stage.world.network.filter = keep
    stage.world.wire.on_request = corpus.requests.append
    with listening(None):
        try:
            stage.begin()
            for kind in _ASKED:
                stage.ask(kind)
            stage.world.run_for(0.5)
            _keep_files(corpus, stage)
        finally:
            stage.world.close()
    return corpus


def _keep_files(corpus: Corpus, stage: SystemStage) -> None:
    disk = stage.active.disk
    corpus.segment_path = next(path for path in disk.paths() if path.endswith(".log"))
    corpus.segments.append(disk.content(corpus.segment_path))
    corpus.beside = {path: disk.content(path) for path in disk.paths() if path != corpus.segment_path}
    corpus.election_states.append(disk.content(f"{DIRECTORY}/{QUORUM_STATE_NAME}"))
    image = stage.active.controller.stable
    content = b"".join(checkpoint_batches(image, 1_700_000_000_000))
    corpus.checkpoints.append(content)
    corpus.checkpoint_id = CheckpointId(image.provenance.end_offset, parse_header(content).epoch)
    corpus.digest = digest_image(image).value
