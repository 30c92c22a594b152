"""Controllers that a `quorate snapshot` command is about, one by one, and letting them take checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict

from quorate.controller.api.checkpoint_models import CheckpointReply
from quorate.controller.client.attempts import Unreachable
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.scripts.cli.snapshot.listing import Listed, of_controller

_LOOK_S: Final = 0.2


class Taken(BaseModel):
    """The outcome of asking one controller, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    url: str
    #: Why there is no checkpoint; empty where there is.
    failure: str
    #: Whether the controller answered at all.
    is_reachable: bool
    node_id: int | None
    #: Whether it was written now; if not, the newest one covered everything.
    is_written: bool
    #: Durable, and covering what the controller had applied when it was asked.
    checkpoint: CheckpointReply | None


class TakenCheckpoints(BaseModel):
    """The outcomes of all controllers that were to take one, in the output for programs."""

    model_config = ConfigDict(frozen=True)

    taken: list[Taken]


async def controllers_of(client: ControllerClient, *, all_of_them: bool) -> Sequence[str]:
    """Every controller of the quorum, or those that the client was given."""
    if not all_of_them:
        return client.urls
    return [voter.http for voter in (await client.describe_quorum()).voters]


async def take_first(client: ControllerClient) -> list[Taken]:
    """Let the first controller that answers take one.

    Raises:
        Unreachable: none does.
    """
    taken = []
    for url in client.urls:
        taken.append(await take(client, url))
        if taken[-1].is_reachable:
            return taken[-1:]
    raise Unreachable([one.failure for one in taken], is_nobody_there=True)


async def take_everywhere(client: ControllerClient) -> list[Taken]:
    """Let every controller of the quorum take one, all at the same time.

    Raises:
        NotController: nobody says who they are.
    """
    urls = await controllers_of(client, all_of_them=True)
    return list(await asyncio.gather(*(take(client, url) for url in urls)))


async def take(client: ControllerClient, url: str) -> Taken:
    """Let one controller take a checkpoint, however long it takes."""
    try:
        reply = await client.checkpoints.take(url)
        return Taken(
            url=url,
            failure="",
            is_reachable=True,
            node_id=reply.node_id,
            is_written=reply.is_written,
            checkpoint=reply.checkpoint,
        )
    except ApiError as error:
        if error.code is ErrorCode.REQUEST_TIMED_OUT:
            return await _wait(client, url)
        return _failed(url, str(error), is_reachable=True)
    except (NotSent, NoAnswer) as error:
        return _failed(url, str(error), is_reachable=isinstance(error, NoAnswer))


async def _wait(client: ControllerClient, url: str) -> Taken:
    """The checkpoint that a controller is writing, when it is durable."""
    try:
        listed = await client.checkpoints.list(url)
        wanted = listed.writing_offset
        while listed.writing_offset is not None and listed.writing_offset == wanted:
            await asyncio.sleep(_LOOK_S)
            listed = await client.checkpoints.list(url)
    except (ApiError, NotSent, NoAnswer) as error:
        return _failed(url, f"the checkpoint was still being written, and then: {error}", is_reachable=True)
    newest = listed.checkpoints[-1] if listed.checkpoints else None
    if newest is None or (wanted is not None and newest.end_offset < wanted):
        return _failed(url, "the checkpoint was not written: see the controller's log", is_reachable=True)
    return Taken(url=url, failure="", is_reachable=True, node_id=listed.node_id, is_written=True, checkpoint=newest)


def _failed(url: str, failure: str, *, is_reachable: bool) -> Taken:
    return Taken(url=url, failure=failure, is_reachable=is_reachable, node_id=None, is_written=False, checkpoint=None)


async def list_controllers(client: ControllerClient, *, all_of_them: bool) -> list[Listed]:
    """The checkpoints of every controller, or of the first one that answers.

    Raises:
        Unreachable: none does.
    """
    listed: list[Listed] = []
    for url in await controllers_of(client, all_of_them=all_of_them):
        try:
            listed.append(of_controller(url, await client.checkpoints.list(url)))
        except (ApiError, NotSent, NoAnswer) as error:
            listed.append(of_controller(url, None, str(error)))
        if not all_of_them and not listed[-1].failure:
            return listed[-1:]
    if all(one.failure for one in listed):
        raise Unreachable([one.failure for one in listed])
    return listed
