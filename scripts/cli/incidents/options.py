"""The thresholds of incidents: the options of every command that tells of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from quorate.pipeline.incidents.thresholds import Thresholds

Mass = Annotated[
    int, typer.Option("--mass", min=1, metavar="N", help="So many partitions changed at once are a mass event.")
]
Flaps = Annotated[
    int, typer.Option("--flaps", min=0, metavar="N", help="An ISR that shrinks and grows more often flaps ...")
]
FlapMinutes = Annotated[
    float, typer.Option("--flap-minutes", min=0.01, metavar="M", help="... within so many minutes.")
]
SlowMinutes = Annotated[
    float, typer.Option("--slow-minutes", min=0, metavar="M", help="A reassignment that takes longer is slow.")
]
SameEvent = Annotated[
    float,
    typer.Option(
        "--same-event-seconds", min=0, metavar="S", help="A loss so near to a broker's event has it as its cause."
    ),
]
MinIsr = Annotated[
    int, typer.Option("--min-isr", min=1, metavar="N", help="min.insync.replicas where the log has none.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show so many of each kind.")]


def thresholds_of(
    mass: int, flaps: int, flap_minutes: float, slow_minutes: float, same_event_seconds: float, min_isr: int
) -> Thresholds:
    """The thresholds that the options name."""
    return Thresholds(
        mass_partitions=mass,
        flaps=flaps,
        flap_window=timedelta(minutes=flap_minutes),
        slow_reassignment=timedelta(minutes=slow_minutes),
        same_event=timedelta(seconds=same_event_seconds),
        min_isr=min_isr,
    )
