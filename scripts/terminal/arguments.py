"""Options and arguments that several commands share, and what is read out of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from quorate.controller.reads.name_patterns import InvalidPattern, NamePatterns
from quorate.metadata_log.limits import PARTITION_SLOTS_MAX, RECORDS_PER_OPERATION_MAX, STRING_BYTES_MAX
from quorate.scripts.terminal.completing.kinds import NameKind, completed_by
from quorate.scripts.terminal.programs.failures import USAGE, Failed


def sendable(text: str) -> str:
    """The text, if a request can hold it.

    Raises:
        typer.BadParameter: it is too long, or not Unicode.
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise typer.BadParameter(f"{text[:80]!r} is no Unicode text") from None
    if size > STRING_BYTES_MAX:
        raise typer.BadParameter(f"{text[:80]!r}... has {size} bytes: {STRING_BYTES_MAX} is the most")
    return text


def _all_sendable(texts: list[str] | None) -> list[str] | None:
    for text in texts or ():
        sendable(text)
    return texts


AsJson = Annotated[bool, typer.Option("--json", help="Everything known, as JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would come of it, and change nothing.")]
PlanTo = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Write down what would be done, and change nothing: `quorate apply FILE` does it, if nothing has changed.",
        show_default=False,
    ),
]
Patterns = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="TOPIC",
        help="Names; in one with a star, 'orders*', it stands for anything.",
        callback=_all_sendable,
        autocompletion=completed_by(NameKind.TOPICS),
        show_default=False,
    ),
]
Topics = Annotated[
    list[str],
    typer.Argument(
        metavar="TOPIC",
        help="Names of topics.",
        callback=_all_sendable,
        autocompletion=completed_by(NameKind.TOPICS),
        show_default=False,
    ),
]
Limit = Annotated[
    int, typer.Option("--limit", min=1, max=10_000_000, metavar="N", help="Show so many at most; pages are followed.")
]
Broker = Annotated[
    int | None,
    typer.Option(
        "--broker",
        min=0,
        metavar="ID",
        help="With this broker among the replicas.",
        autocompletion=completed_by(NameKind.BROKERS),
    ),
]
Leader = Annotated[
    int | None,
    typer.Option(
        "--leader", min=0, metavar="ID", help="Led by this broker.", autocompletion=completed_by(NameKind.BROKERS)
    ),
]
UnderReplicated = Annotated[bool, typer.Option("--under-replicated", help="With replicas outside the ISR.")]
Offline = Annotated[bool, typer.Option("--offline", "--unavailable", help="Without a leader.")]
UnderMinIsr = Annotated[bool, typer.Option("--under-min-isr", help="With fewer in the ISR than min.insync.replicas.")]
AtMinIsr = Annotated[bool, typer.Option("--at-min-isr", help="With just as many in the ISR as min.insync.replicas.")]
NotPreferred = Annotated[bool, typer.Option("--not-preferred", help="Not led by the first replica.")]
Reassigning = Annotated[bool, typer.Option("--reassigning", help="With an open reassignment.")]
Assignment = Annotated[
    str | None,
    typer.Option(
        "--replica-assignment",
        metavar="ID:ID,...",
        help="Replicas of each partition, the preferred leader first: '11:12,12:13' are two partitions.",
        show_default=False,
    ),
]

LIMIT_DEFAULT: Final = 10_000

#: Of ids of brokers, and of numbers of partitions.
NUMBER_MAX: Final = 2**31 - 1
_RANGE_MAX: Final = 10_000


def _broker_id(metavar: str, text: str) -> Any:
    """The argument that is a broker's id, or several."""
    return typer.Argument(
        metavar=metavar,
        min=0,
        max=NUMBER_MAX,
        help=text,
        autocompletion=completed_by(NameKind.BROKERS),
        show_default=False,
    )


BrokerId = Annotated[int, _broker_id("ID", "Broker id.")]
BrokerIds = Annotated[list[int], _broker_id("ID...", "Broker ids.")]


def patterns_text(patterns: list[str] | None) -> str:
    """Patterns as the API takes them.

    Raises:
        typer.BadParameter: one is none, or there are too many.
    """
    text = ",".join(patterns or ())
    try:
        # A single empty one is no list without any.
        NamePatterns.parse(text if text or not patterns else ",")
    except InvalidPattern as error:
        raise typer.BadParameter(str(error), param_hint="TOPIC") from None
    return text


def exact_names(patterns: list[str] | None) -> list[str]:
    """Those that are names, not patterns, each once."""
    parts = [part for pattern in patterns or () for part in pattern.split(",")]
    return [name for name in dict.fromkeys(parts) if "*" not in name]


def wanted_parameters(names: str, broker: int | None, leader: int | None, **conditions: bool) -> dict[str, str | int]:
    """A filter as the API takes it. ``conditions`` are named as the API's, with underscores."""
    wanted: dict[str, str | int] = {"names": names}
    in_one_of = ",".join(name.replace("_", "-") for name, is_wanted in conditions.items() if is_wanted)
    if in_one_of:
        wanted["conditions"] = in_one_of
    if broker is not None:
        wanted["broker"] = broker
    if leader is not None:
        wanted["leader"] = leader
    return wanted


def key_values(texts: list[str] | None) -> list[tuple[str, str]]:
    """``NAME=VALUE`` taken apart.

    Raises:
        typer.BadParameter: one is none.
    """
    pairs = []
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            # The value may be a secret: it is not repeated.
            raise typer.BadParameter(f"NAME=VALUE is wanted, and there is no name or no '=' in one for {name[:80]!r}")
        pairs.append((sendable(name), sendable(value)))
    return pairs


def replica_lists(text: str) -> list[list[int]]:
    """``11:12,12:13`` taken apart: the replicas of each partition.

    Raises:
        typer.BadParameter: it is no such text.
    """
    parts = text.split(",")
    if len(parts) > RECORDS_PER_OPERATION_MAX:
        raise typer.BadParameter(f"{len(parts)} partitions: {RECORDS_PER_OPERATION_MAX} at once is the most")
    lists = [part.split(":") for part in parts]
    for ids in lists:
        if len(ids) > PARTITION_SLOTS_MAX or not all(map(_is_id, ids)):
            raise typer.BadParameter(
                f"{':'.join(ids)[:80]!r} is no list of replicas: broker ids with colons between them, "
                f"{PARTITION_SLOTS_MAX} at most",
                param_hint="--replica-assignment",
            )
    return [[int(one) for one in ids] for ids in lists]


def broker_ids(text: str, option: str = "--brokers") -> list[int]:
    """``11-13,20`` taken apart: ascending, each once; it was given with an option.

    Raises:
        typer.BadParameter: it is no such text.
    """
    ids: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not _is_id(first) or (dash and not _is_id(last)):
            raise typer.BadParameter(f"{part[:80]!r} is no broker id, and no range as 11-13", param_hint=option)
        low, high = int(first), int(last if dash else first)
        if high < low:
            raise typer.BadParameter(f"{part!r} is no range: say the lower id first, {high}-{low}", param_hint=option)
        if high - low >= _RANGE_MAX:
            what = f"{part!r} is a range of {high - low + 1} brokers: {_RANGE_MAX} is the most"
            raise typer.BadParameter(what, param_hint=option)
        ids.update(range(low, high + 1))
    return sorted(ids)


def whole_number(text: str, most: int = NUMBER_MAX) -> int | None:
    """The number that a text is, in digits and nothing else; None: it is none, or above ``most``."""
    # Python refuses texts of some thousands of digits.
    is_short = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return int(text) if is_short and int(text) <= most else None


def _is_id(text: str) -> bool:
    return whole_number(text) is not None


def topic_partitions(texts: list[str]) -> Iterator[tuple[str, int]]:
    """``orders-17`` taken apart, each.

    Raises:
        typer.BadParameter: one is none.
    """
    for text in texts:
        topic, _, digits = text.rpartition("-")
        number = whole_number(digits)
        if not topic or number is None:
            raise typer.BadParameter(f"{text[:300]!r} is no partition: TOPIC-NUMBER is wanted, as orders-17")
        yield topic, number


def confirm(what: str, *, yes: bool) -> None:
    """Go on only if the user says so: on the terminal, or with --yes beforehand.

    Args:
        what: it is that is to be done, as an order: ``delete topic orders``.

    Raises:
        Failed: refused, or there is nobody to ask.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise Failed(f"nobody can be asked here: to {what}, say --yes", name=USAGE)
    # Not on standard output, where the answer to the command goes.
    sys.stderr.write(f"{what[:1].upper()}{what[1:]}? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Failed("nothing was done")
