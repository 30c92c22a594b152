"""The options of every command that tells of incidents."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Final

import typer

from quorate.snapshots.incidents.thresholds import Thresholds

_USUAL: Final = Thresholds()
_MINUTE: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentOptions:
    """Thresholds from which on something is an incident, and how many incidents are shown."""

    mass: Annotated[
        int, typer.Option("--mass", min=1, metavar="N", help="So many partitions changed at once are a mass event.")
    ] = _USUAL.mass_partitions
    flaps: Annotated[
        int, typer.Option("--flaps", min=0, metavar="N", help="An ISR that shrinks and grows more often flaps ...")
    ] = _USUAL.flaps
    flap_minutes: Annotated[
        float, typer.Option("--flap-minutes", min=0.01, metavar="M", help="... within so many minutes.")
    ] = _USUAL.flap_window / _MINUTE
    slow_minutes: Annotated[
        float, typer.Option("--slow-minutes", min=0, metavar="M", help="A reassignment that takes longer is slow.")
    ] = _USUAL.slow_reassignment / _MINUTE
    same_event_seconds: Annotated[
        float,
        typer.Option(
            "--same-event-seconds", min=0, metavar="S", help="A loss so near to a broker's event has it as its cause."
        ),
    ] = _USUAL.same_event.total_seconds()
    min_isr: Annotated[
        int, typer.Option("--min-isr", min=1, metavar="N", help="min.insync.replicas where the log has none.")
    ] = _USUAL.min_isr
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="Show so many of each kind.")] = 20

    @property
    def thresholds(self) -> Thresholds:
        """The thresholds that the options name."""
        return Thresholds(
            mass_partitions=self.mass,
            flaps=self.flaps,
            flap_window=timedelta(minutes=self.flap_minutes),
            slow_reassignment=timedelta(minutes=self.slow_minutes),
            same_event=timedelta(seconds=self.same_event_seconds),
            min_isr=self.min_isr,
        )
