"""Names that complete a word of a command line. Whoever types waits: nothing is said of what goes wrong, nor written.

The cluster is the one that the command would ask (``places.chosen``), through the options that are typed already.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from quorate.scripts.logins.cluster_variables import CONTROLLERS_VARIABLE, SECRET_VARIABLE
from quorate.scripts.logins.named_login import is_login_named
from quorate.scripts.terminal.completing.grammar import Grammar
from quorate.scripts.terminal.completing.kinds import NameKind
from quorate.scripts.terminal.completing.questions import NoNames, first_answer
from quorate.scripts.terminal.completing.typed_line import TypedLine
from quorate.scripts.terminal.places.controllers import find_controllers, find_secret, local_directory
from quorate.scripts.terminal.places.proofs import proof_for

#: The most names that are shown: who sees more types another letter.
NAMES_MAX: Final = 100
#: A shell may take a completion apart, or run it: what is no plain word is left out.
_PLAIN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:=@-]*")
#: They mean something else in a pattern of names.
_OF_PATTERNS: Final = frozenset("*,")


def plain(names: Iterable[str], begin: str) -> list[str]:
    """Those that begin so and are harmless to a shell, in their order."""
    return sorted(name for name in names if name.startswith(begin) and _PLAIN.fullmatch(name))[:NAMES_MAX]


def names_of(kind: NameKind, typed: TypedLine, begin: str, grammar: Grammar) -> list[str]:
    """Names of a kind that begin so, for the end of a line.

    Raises:
        QuorateError, OSError, ValueError and others: there are none. What answers may say anything.
    """
    return plain(_KINDS[kind](typed, begin, grammar), begin)


def _topics(typed: TypedLine, begin: str, _: Grammar) -> Iterable[str]:
    found = _asked(typed, "/v1/topics", {"names": f"{begin}*"}, begin)
    return (topic["name"] for topic in found["topics"])


def _partitions(typed: TypedLine, begin: str, _: Grammar) -> Iterable[str]:
    """As `orders-17`, of the topic that is typed; of topics that begin so, the first."""
    topic, dash, _number = begin.rpartition("-")
    wanted = f"{begin}*,{topic}" if dash and topic else f"{begin}*"
    found = _asked(typed, "/v1/partitions", {"names": wanted}, begin)
    return (f"{topic['name']}-{one['partition_index']}" for topic in found["topics"] for one in topic["partitions"])


def _brokers(typed: TypedLine, _: str, __: Grammar) -> Iterable[str]:
    return (str(broker["id"]) for broker in _asked(typed, "/v1/brokers", {})["brokers"])


def _controllers(typed: TypedLine, _: str, __: Grammar) -> Iterable[str]:
    return (str(voter["node_id"]) for voter in _asked(typed, "/v1/quorum", {})["voters"])


_Names = Callable[[TypedLine, str, Grammar], Iterable[str]]
#: What stands before a name -> the names.
_SUBJECTS: Final[dict[str, _Names]] = {
    "broker": _brokers,
    "controller": _controllers,
    "partition": _partitions,
    "topic": _topics,
}
_RESOURCES: Final = ("topic/", "broker/", "group/", "client-metrics/")


def _subjects(typed: TypedLine, begin: str, grammar: Grammar) -> Iterable[str]:
    if not typed.arguments:
        return _SUBJECTS
    return _SUBJECTS[typed.arguments[0]](typed, begin, grammar)


def _resources(typed: TypedLine, begin: str, grammar: Grammar) -> Iterable[str]:
    kind, slash, name = begin.partition("/")
    if not slash:
        return _RESOURCES
    return (f"{kind}/{one}" for one in _SUBJECTS[kind](typed, name, grammar)) if kind in ("topic", "broker") else ()


def _configs(typed: TypedLine, _: str, grammar: Grammar) -> Iterable[str]:
    """Of the kind of resource that is typed already; else of topics'."""
    kind = typed.arguments[0] if typed.arguments else "topic/"
    return grammar.configs.get(kind.partition("/")[0], ())


def _settings(typed: TypedLine, begin: str, grammar: Grammar) -> Iterable[str]:
    return (f"{name}=" for name in _configs(typed, begin, grammar))


def _contexts(*_: object) -> Iterable[str]:
    from quorate.scripts.terminal.places.chosen import kept_contexts

    kept = kept_contexts()
    return () if kept is None else (one.name for one in kept.contexts)


def _processes(*_: object) -> Iterable[str]:
    from quorate.scripts.cluster.plan import ClusterPlan

    plan = ClusterPlan.load(local_directory())
    return () if plan is None else (node.name for node in plan.members.nodes)


_KINDS: Final[dict[NameKind, _Names]] = {
    NameKind.TOPICS: _topics,
    NameKind.PARTITIONS: _partitions,
    NameKind.BROKERS: _brokers,
    NameKind.CONTROLLERS: _controllers,
    NameKind.SUBJECTS: _subjects,
    NameKind.RESOURCES: _resources,
    NameKind.CONFIGS: _configs,
    NameKind.SETTINGS: _settings,
    NameKind.CONTEXTS: _contexts,
    NameKind.PROCESSES: _processes,
}


def _asked(typed: TypedLine, path: str, parameters: dict[str, str], begin: str = "") -> Any:
    """The answer of the cluster; of topics and partitions, which ``parameters`` choose, the first.

    Raises:
        NoNames: it is not asked, or does not answer. As ``find_controllers``, ``find_secret``, ``proof_for``.
    """
    if is_login_named():
        raise NoNames("a login is written down, and takes longer than anybody waits")
    if _OF_PATTERNS & set(begin):
        raise NoNames("no name has that in it")
    urls = find_controllers(typed.options.get("--controllers") or os.environ.get(CONTROLLERS_VARIABLE))
    file = typed.options.get("--secret-file") or os.environ.get(SECRET_VARIABLE)
    secret = find_secret(Path(file) if file else None)
    proof = proof_for(urls, secret, local_directory(), logs_in=False)
    return first_answer(urls, proof, path, {**parameters, "limit": NAMES_MAX} if parameters else {})
