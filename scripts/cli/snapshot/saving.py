"""The state of a running cluster, taken over its metadata feed: the newest that is known to be committed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.broker.controllers.feed import FeedForbidden, FeedUnavailable
from quorate.controller.client.attempts import Unreachable
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError, NotController, QuorateError
from quorate.scripts.cli.logs.live_image import state_at
from quorate.scripts.cli.logs.live_log import LiveLog
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image_digest import ImageDigest, digest_image

#: Controllers are asked how they are at the same time; one that is stopped is not waited for any longer.
_PATIENCE_MS: Final = 2_000.0


class NotSaved(QuorateError):
    """There is nothing that may be saved. One sentence that says why."""


@dataclass(frozen=True, slots=True)
class StateSource:
    """A controller, as it said when it was asked."""

    url: str
    node_id: int
    cluster_id: str
    #: As ``MetaProperties.generation``.
    generation: int
    high_watermark: int
    is_active: bool


@dataclass(frozen=True, slots=True)
class TakenState:
    """A committed state, and who has the same."""

    image: MetadataImage
    digest: ImageDigest
    source: StateSource
    #: Ids of the controllers whose own state at this offset has this digest; others had none there to compare any more.
    agreeing: tuple[int, ...]


async def take_state(
    client: ControllerClient, on_bytes: Callable[[int], None], cluster_id: str | None = None
) -> TakenState:
    """The newest committed state that one of the client's controllers has, held against those of all of them.

    Nothing is written at any controller.

    Args:
        on_bytes: told how many more bytes have come.
        cluster_id: the cluster that they must be of; None: any.

    Raises:
        Unreachable: no controller answers, or none goes on answering. ApiError, FeedForbidden: who asks lacks a right.
        NotSaved: the controllers are of several clusters, or of another one, have nothing yet, or have another state.
        UntrustworthyAnswer, ReplayError, ImageNotAvailable: a controller answers what cannot be, or has cut its log.
    """
    sources = await _sources(client)
    if cluster_id not in (None, sources[0].cluster_id):
        raise NotSaved(f"the controllers are of cluster {sources[0].cluster_id}, and what is there is of {cluster_id}")
    failures = []
    for source in sources:
        try:
            image = await state_at(LiveLog(client, source.url, on_bytes), None)
        except FeedForbidden:
            raise
        except FeedUnavailable as error:
            failures.append(str(error))
            continue
        if not image.provenance.end_offset:
            raise NotSaved(f"{source.url}: nothing is committed yet: there is no state to save")
        digest = digest_image(image)
        return TakenState(image, digest, source, await _agreeing(client, sources, image.provenance.end_offset, digest))
    raise Unreachable(failures)


async def _sources(client: ControllerClient) -> list[StateSource]:
    """Those who answer: who knows most to be committed first, and of equals those that lead nothing."""
    answers = await asyncio.gather(*(_ask(client, url) for url in client.urls))
    found = [answer for answer in answers if isinstance(answer, StateSource)]
    refused = [answer for answer in answers if isinstance(answer, ApiError) and not isinstance(answer, NotController)]
    if not found and refused:
        raise refused[0]
    if not found:
        raise Unreachable([str(answer) for answer in answers])
    clusters = sorted({source.cluster_id for source in found})
    if len(clusters) > 1:
        raise NotSaved(f"the controllers are of several clusters ({', '.join(clusters)}): name those of one")
    return sorted(found, key=lambda one: (-one.generation, -one.high_watermark, one.is_active))


async def _ask(client: ControllerClient, url: str) -> StateSource | QuorateError:
    try:
        node, quorum = await client.quorum_of(url, _PATIENCE_MS)
    except (ApiError, NotSent, NoAnswer) as error:
        return error
    generation = quorum.generation or 0
    return StateSource(url, node.node_id, node.cluster_id, generation, node.high_watermark, quorum.is_active)


async def _agreeing(
    client: ControllerClient, sources: Sequence[StateSource], offset: int, digest: ImageDigest
) -> tuple[int, ...]:
    said = await asyncio.gather(*(_digest_of(client, source, offset) for source in sources))
    for source, text in zip(sources, said, strict=True):
        if text not in (None, digest.text):
            raise NotSaved(
                f"controller {source.node_id} has a state with digest {text} at offset {offset}, and what was fetched"
                f" has {digest.text}: nothing is saved; see quorate status"
            )
    return tuple(sorted(source.node_id for source, text in zip(sources, said, strict=True) if text is not None))


async def _digest_of(client: ControllerClient, source: StateSource, offset: int) -> str | None:
    """None: it has this state no more, or not yet, or is too busy to tell."""
    try:
        return await client.digest_of(source.url, offset)
    except (ApiError, NotSent, NoAnswer):
        return None
