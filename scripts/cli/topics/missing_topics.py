"""Names of topics that are not there: what may have been meant is said with it."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import Final, TypeVar

from quorate.controller.client.client import ControllerClient
from quorate.controller.decisions.origin import ANONYMOUS
from quorate.metadata_log.errors import ApiError, ErrorCode, QuorateError
from quorate.metadata_log.limits import TOPIC_NAME_CHARS_MAX
from quorate.scripts.logins.nobody import HOW_TO_LOG_IN
from quorate.scripts.terminal.paging import topics_named

T = TypeVar("T")

#: How much a name must be like another to be taken for a slip, 0 to 1.
_LIKENESS: Final = 0.75
#: Topics that are looked at, and characters that one of these must begin or end with.
_LOOKED_AT: Final = 1_000
_SAME_CHARS: Final = 2


class NoSuchTopic(QuorateError):
    """A topic that was named is not there."""


async def no_such_topic(client: ControllerClient, missing: Iterable[str]) -> NoSuchTopic:
    """The error for these names, with what may have been meant by the first."""
    names = sorted(missing)
    shown_to = (await client.list_topics(limit=1)).shown_to
    hidden = "" if shown_to is None else f" that {shown_to} may describe"
    how = f"; {HOW_TO_LOG_IN}" if shown_to == ANONYMOUS else ""
    return NoSuchTopic(f"there is no topic {', '.join(names)}{hidden}{await meant_instead(client, names[0])}{how}")


async def say_what_is_not_there(client: ControllerClient, patterns: Sequence[str] | None, found: Iterable[str]) -> None:
    """A line for people on topics that a list was asked for by their names and that are not there, whatever else it
    was asked for: nothing of theirs in it does not say that all is well with them.

    ``found``: the names of the topics in the list.
    """
    named = ",".join(patterns or ()).split(",")
    absent = {one for one in named if one and "*" not in one}.difference(found)
    if absent:
        missing = absent.difference(await topics_named(client, absent))
        if missing:
            sys.stderr.write(f"quorate: {await no_such_topic(client, missing)}\n")


async def meant_instead(client: ControllerClient, name: str) -> str:
    """The topic that may have been meant by the name of none, to be put behind a sentence; empty where none is like it.

    Of a cluster with many topics only some that begin or end alike are looked at: nobody waits for a guess.
    """
    if not _SAME_CHARS < len(name) <= TOPIC_NAME_CHARS_MAX or set("*,") & set(name):
        return ""
    patterns = f"{name[:_SAME_CHARS]}*,*{name[-_SAME_CHARS:]}"
    try:
        alike = (await client.list_topics(names=patterns, limit=_LOOKED_AT)).topics
    except QuorateError:
        return ""  # Who asks may not look, or nobody answers any more: the first error is what matters.
    names = [topic.name for topic in alike]
    # It may be there, and a partition of it not.
    meant = [] if name in names else get_close_matches(name, names, 1, _LIKENESS)
    return f": did you mean {meant[0]}?" if meant else ""


async def asked_about(
    client: ControllerClient, names: Sequence[str], question: Callable[[ControllerClient], Awaitable[T]]
) -> T:
    """The answer to a question about topics; where there is only one and it is not there, the refusal says what may
    have been meant.

    Raises:
        As the question.
    """
    try:
        return await question(client)
    except ApiError as error:
        if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or len(set(names)) != 1:
            raise
        hint = await meant_instead(client, names[0])
        raise ApiError(error.code, error.message.rstrip(".") + hint if hint else error.message, error.details) from None
