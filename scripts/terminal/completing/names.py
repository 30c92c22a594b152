"""Names that complete a word of a command line. Whoever types waits: nothing is said of what goes wrong, nor written.

The cluster is the one that the command would ask (``places.chosen``), through the options that are typed already.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import TYPE_CHECKING, Final

import typer

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cluster.plan import ClusterPlan
from quorate.scripts.logins.kept_contexts import read_contexts
from quorate.scripts.logins.named_login import is_login_named
from quorate.scripts.terminal.connecting import find_controllers, find_secret, local_directory

if TYPE_CHECKING:
    from quorate.controller.client.client import ControllerClient

#: The most names that are shown: who sees more types another letter.
NAMES_MAX: Final = 100
#: For everything that is asked for one word.
_ASK_S: Final = 0.3
#: A shell may take a completion apart, or run it: what is no plain word is left out.
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:=@-]*")

#: What a question may meet that is no reason to disturb whoever types.
_USUAL: Final = (QuorateError, typer.BadParameter, OSError, TimeoutError, ValueError)


def topic_names(context: typer.Context, incomplete: str) -> list[str]:
    """Topics that begin so."""

    async def names(client: ControllerClient) -> list[str]:
        found = await client.list_topics(names=f"{incomplete}*", limit=NAMES_MAX)
        return [topic.name for topic in found.topics]

    return [] if {"*", ","} & set(incomplete) else _asked(context, incomplete, names)


def partition_names(context: typer.Context, incomplete: str) -> list[str]:
    """Partitions, as `orders-17`, of the topic that is typed; of topics that begin so, the first."""

    async def names(client: ControllerClient) -> list[str]:
        topic, dash, _ = incomplete.rpartition("-")
        wanted = f"{incomplete}*,{topic}" if dash and topic else f"{incomplete}*"
        found = await client.list_partitions(names=wanted, limit=NAMES_MAX)
        return [f"{topic.name}-{one.partition_index}" for topic in found.topics for one in topic.partitions]

    return [] if {"*", ","} & set(incomplete) else _asked(context, incomplete, names)


def broker_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of registered brokers."""

    async def ids(client: ControllerClient) -> list[str]:
        return [str(broker.id) for broker in (await client.describe_brokers()).brokers]

    return _asked(context, incomplete, ids)


def controller_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of the quorum's voters."""

    async def ids(client: ControllerClient) -> list[str]:
        return [str(voter.node_id) for voter in (await client.describe_quorum()).voters]

    return _asked(context, incomplete, ids)


#: What stands before a name -> the names.
_KINDS: Final[dict[str, Callable[[typer.Context, str], list[str]]]] = {
    "broker": broker_ids,
    "controller": controller_ids,
    "partition": partition_names,
    "topic": topic_names,
}


def node_ids(context: typer.Context, incomplete: str) -> list[str]:
    """Ids of what the command is called after: brokers, or controllers."""
    return _KINDS[context.info_name or ""](context, incomplete) if context.info_name in _KINDS else []


def subjects(context: typer.Context, incomplete: str) -> list[str]:
    """`broker 12`, `topic orders`: the kind first, and then names of it."""
    said = next((value for value in context.params.values() if isinstance(value, (list, tuple)) and value), ())
    if not said:
        return _plain(_KINDS, incomplete)
    return _KINDS[said[0]](context, incomplete) if said[0] in _KINDS else []


def resources(context: typer.Context, incomplete: str) -> list[str]:
    """`topic/orders`, `broker/12`."""
    kind, slash, name = incomplete.partition("/")
    if not slash:
        return _plain(("topic/", "broker/", "group/", "client-metrics/"), incomplete)
    return [f"{kind}/{one}" for one in _KINDS[kind](context, name)] if kind in ("topic", "broker") else []


def config_names(context: typer.Context, incomplete: str) -> list[str]:
    """Names of configs, of the kind of resource that is typed already; else of topics'."""
    from quorate.scripts.terminal.completing.configs import known_names

    kind = str(context.params.get("resource") or "topic/").partition("/")[0]
    return _plain(known_names(kind), incomplete)


def settings(context: typer.Context, incomplete: str) -> list[str]:
    """`NAME=`, of which the value is typed."""
    return [f"{name}=" for name in config_names(context, incomplete)]


def context_names(incomplete: str) -> list[str]:
    """Contexts that are kept."""
    try:
        return _plain((one.name for one in read_contexts().contexts), incomplete)
    except _USUAL:
        return []


def process_names(incomplete: str) -> list[str]:
    """Controllers and brokers of the local cluster, as `broker-11`."""
    try:
        plan = ClusterPlan.load(local_directory())
    except _USUAL:
        return []
    return [] if plan is None else _plain((node.name for node in plan.members.nodes), incomplete)


def _asked(
    context: typer.Context, incomplete: str, question: Callable[[ControllerClient], Awaitable[list[str]]]
) -> list[str]:
    """The names that the cluster answers in time; none where it does not, or somebody would have to log in."""
    if is_login_named():
        return []  # a login is written down, and takes longer than anybody waits
    try:
        urls = find_controllers(context.params.get("controllers"))
        secret = find_secret(context.params.get("secret_file"))
        return _plain(_run(_answer(urls, secret, question)), incomplete)
    except _USUAL:
        return []


def _run(answer: Coroutine[None, None, list[str]]) -> list[str]:
    """As `asyncio.run`, which waits for threads: a host name may be looked up in one for longer than anybody waits."""
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(answer)
    finally:
        loop.close()


async def _answer(
    urls: Iterable[str], secret: bytes | None, question: Callable[[ControllerClient], Awaitable[list[str]]]
) -> list[str]:
    from quorate.scripts.terminal.asking import client_of

    wait_ms = _ASK_S * 1000
    async with asyncio.timeout(_ASK_S), client_of([*urls], secret, timeout_ms=wait_ms, absent_ms=wait_ms) as client:
        return await question(client)


def _plain(names: Iterable[str], incomplete: str) -> list[str]:
    fitting = sorted(name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name))
    return fitting[:NAMES_MAX]
