"""The readers of bytes that nobody vouches for: files of a node, frames of its peers, requests of clients."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import Final

import aiohttp
import msgpack

from quorate.controller.process.settings import LogSettings
from quorate.controller.process.settings_parts import log_config
from quorate.metadata_log.batches.batch import HEADER_BYTES, build_batch, iter_records, parse_header, place_batch
from quorate.metadata_log.checkpoints.checkpoint_files import check_checkpoint, checkpoint_name
from quorate.metadata_log.directory.quorum_state import (
    QUORUM_STATE_NAME,
    QuorumState,
    QuorumStateStore,
    decode_quorum_state,
    encode_quorum_state,
)
from quorate.metadata_log.errors import QuorateError
from quorate.metadata_log.log.segment_log import MetadataLog
from quorate.quorum.errors import ProtocolError
from quorate.quorum.messages.wire import decode, encode
from quorate.quorum.transport.handshake import decode_hello
from quorate.scripts.fuzzing.corpus import Corpus
from quorate.scripts.fuzzing.exchange_targets import FollowAnswerTarget, FollowMessageTarget
from quorate.scripts.fuzzing.identity_targets import CertificateNameTarget, LoginTarget
from quorate.scripts.fuzzing.mutating import mutated, mutated_document
from quorate.scripts.fuzzing.target import FuzzTarget, Wrong
from quorate.scripts.simulation.machine.memory_disk import MemoryDisk
from quorate.scripts.simulation.quorum.host import DIRECTORY
from quorate.scripts.simulation.system.controller_process import batches_in, url_of
from quorate.scripts.simulation.system.http_wire import WireAnswer, WireRequest, WireSession
from quorate.scripts.simulation.system.scenarios.stage import SystemStage
from quorate.scripts.simulation.system.story import listening
from quorate.snapshots.checkpoints.checkpoint import read_checkpoint
from quorate.snapshots.image_digest import digest_image
from quorate.snapshots.replay.replay_state import ReplayState

#: Inputs after which the HTTP target begins with a new cluster: some of them are taken, and make its state grow.
_INPUTS_PER_CLUSTER: Final = 400
#: What a client may be answered; 504 says that the outcome is unknown, which nothing here should come to.
_STATUSES: Final = frozenset({200, 207, 400, 404, 405, 409, 413, 415, 416, 422, 429, 503})
#: Seconds, virtual, that an answer may take.
_ANSWER_SECONDS: Final = 40.0


def _resealed(content: bytes, rng: Random) -> bytes:
    """The body of one batch mutated under a CRC that is right: what a program wrote that was wrong itself."""
    batches = list(_whole_batches(content))
    at = rng.randrange(len(batches))
    header = parse_header(batches[at])
    if not header.is_control:
        body = mutated([batches[at][HEADER_BYTES:]], rng)
        batch = build_batch(body, header.record_count, header.timestamp)
        batches[at] = place_batch(batch, header.base_offset, header.epoch)
    return b"".join(batches)


def _whole_batches(content: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(content):
        size = parse_header(content, start).size
        yield content[start : start + size]
        start += size


class LogTarget:
    """A segment, opened as a node does, read and replayed."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def make(self, rng: Random) -> bytes:
        segment = self._corpus.segments[0]
        return _resealed(segment, rng) if rng.random() < 0.5 else mutated([segment], rng)

    def run(self, data: bytes) -> bool:
        disk = MemoryDisk(Random(1))
        for path, content in self._corpus.beside.items():
            disk.put(path, content)
        disk.put(self._corpus.segment_path, data)
        log = MetadataLog.open(disk, DIRECTORY, replace(log_config(LogSettings()), resident_bytes=0))
        found = disk.content(self._corpus.segment_path)
        if log.damage is not None and found != data:
            raise Wrong("a damaged segment was changed")
        if not data.startswith(found):
            raise Wrong("a segment was changed beyond having its tail cut")
        try:
            self._replay(log)
        except QuorateError:
            return False
        return log.damage is None and len(found) == len(data)

    def _replay(self, log: MetadataLog) -> None:
        state = ReplayState()
        for index in range(log.entry_count):
            batch = log.read(index)
            for _ in iter_records(batch):
                pass
            state = state.replay_batch(batch)


class CheckpointTarget:
    """A checkpoint file, checked as a node does at its start, and loaded."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._is_resealed = False

    def make(self, rng: Random) -> bytes:
        content = self._corpus.checkpoints[0]
        self._is_resealed = rng.random() < 0.5
        return _resealed(content, rng) if self._is_resealed else mutated([content], rng)

    def run(self, data: bytes) -> bool:
        checkpoint = self._corpus.checkpoint_id
        disk = MemoryDisk(Random(1))
        path = f"{DIRECTORY}/{checkpoint_name(checkpoint)}"
        disk.put(path, data)
        try:
            check_checkpoint(disk, path, checkpoint)
            image = read_checkpoint(batches_in(data), checkpoint.end_offset, checkpoint.epoch)
        except QuorateError:
            return False
        finally:
            if disk.content(path) != data:
                raise Wrong("reading a checkpoint changed it")
        if not self._is_resealed and digest_image(image).value != self._corpus.digest:
            raise Wrong("a damaged checkpoint was loaded, and the state is another one")
        return True


class ElectionStateTarget:
    """``quorum-state``."""

    def __init__(self, corpus: Corpus) -> None:
        states = [QuorumState(7), QuorumState(2**31 - 1)]
        self._corpus = [*corpus.election_states, *map(encode_quorum_state, states)]

    def make(self, rng: Random) -> bytes:
        return mutated(self._corpus, rng)

    def run(self, data: bytes) -> bool:
        disk = MemoryDisk(Random(1))
        path = f"{DIRECTORY}/{QUORUM_STATE_NAME}"
        disk.put(path, data)
        try:
            state = QuorumStateStore(disk, DIRECTORY).load()
        except QuorateError:
            return False
        finally:
            if disk.content(path) != data:
                raise Wrong("reading an election state changed it")
        if state is None or decode_quorum_state(encode_quorum_state(state), path) != state:
            raise Wrong(f"{state} is not what it says when it is written again")
        return True


class FrameTarget:
    """A message or a hello of a peer."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus.frames

    def make(self, rng: Random) -> bytes:
        return mutated(self._corpus, rng)

    def run(self, data: bytes) -> bool:
        with suppress(QuorateError):
            decode_hello(data)
        try:
            message = decode(data)
        except ProtocolError:
            return False
        if decode(encode(message)) != message:
            raise Wrong(f"{message} is not what it says when it is sent again")
        return True


class HttpTarget:
    """Path, parameters and body of a request, in production's application over a live cluster in virtual time."""

    def __init__(self, corpus: Corpus) -> None:
        # A request's form: method, media type and path on a line each, then the body.
        self._corpus = [_packed(request) for request in corpus.requests]
        self._stage: SystemStage | None = None
        self._left = 0

    def make(self, rng: Random) -> bytes:
        if rng.random() < 0.5:
            document = self._document(rng.choice(self._corpus), rng)
            if document is not None:
                return document
        first, _, rest = mutated(self._corpus, rng).partition(b"\n")
        return (first if first in (b"GET", b"POST", b"DELETE") else b"POST") + b"\n" + rest

    def _document(self, packed: bytes, rng: Random) -> bytes | None:
        """A request with one field of its body changed; None where it has no body."""
        method, media, path, body = packed.split(b"\n", 3)
        if not body:
            return None
        is_json = media.startswith(b"application/json")
        document = mutated_document(json.loads(body) if is_json else msgpack.unpackb(body), rng)
        try:
            body = json.dumps(document).encode() if is_json else msgpack.packb(document)
        except OverflowError:
            return None  # no number of msgpack's
        return b"\n".join([method, media, path, body])

    def run(self, data: bytes) -> bool:
        with listening(None):
            if self._stage is None or self._left == 0:
                self._begin()
            self._left -= 1
            assert self._stage is not None
            answer = self._answer(self._stage, _unpacked(data))
        if answer.status not in _STATUSES:
            raise Wrong(f"answered {answer.status}: {answer.body[:300]!r}")
        return answer.status < 300

    def close(self) -> None:
        """Let the cluster go."""
        if self._stage is not None:
            self._stage.world.close()

    def _begin(self) -> None:
        self.close()
        self._stage = SystemStage(1, None)
        self._stage.begin()
        self._stage.world.checks.brokers_speak_for_themselves = False
        self._left = _INPUTS_PER_CLUSTER

    def _answer(self, stage: SystemStage, request: WireRequest) -> WireAnswer:
        world = stage.world
        answers: list[WireAnswer | Exception] = []

        async def ask() -> None:
            session = WireSession(world.wire, stage.client.client_id)
            sent = dict(request.headers)
            url = url_of(stage.active.node_id) + request.path
            timeout = aiohttp.ClientTimeout(total=_ANSWER_SECONDS)
            async with session.request(request.method, url, data=request.body, headers=sent, timeout=timeout) as got:
                answers.append(WireAnswer(got.status, got.headers, await got.read()))

        task = stage.client.loop.spawn(ask())
        if not world.run_until(task.done, _ANSWER_SECONDS + 1):
            raise Wrong("no answer")
        task.result()
        (answer,) = answers
        assert isinstance(answer, WireAnswer)
        return answer


def _packed(request: WireRequest) -> bytes:
    media = request.headers.get("Content-Type", "")
    return f"{request.method}\n{media}\n{request.path}\n".encode() + request.body


def _unpacked(data: bytes) -> WireRequest:
    method, media, path, body = (*data.split(b"\n", 3), b"", b"", b"")[:4]
    # What a socket would hand over as a path: printable ASCII without blanks.
    text = "".join(chr(byte) for byte in path if 0x20 < byte < 0x7F)
    sent = {"Content-Type": media.decode("ascii", "ignore").strip()} if media else {}
    return WireRequest(method.decode("ascii"), "/" + text.lstrip("/"), sent, body)


TARGETS: Final[dict[str, Callable[[Corpus], FuzzTarget]]] = {
    "log": LogTarget,
    "checkpoint": CheckpointTarget,
    "election-state": ElectionStateTarget,
    "frames": FrameTarget,
    "http": HttpTarget,
    "certificate-names": lambda _: CertificateNameTarget(),
    "login": lambda _: LoginTarget(),
    "follow-messages": lambda _: FollowMessageTarget(),
    "follow-answers": lambda _: FollowAnswerTarget(),
}
