"""The outcome of a drill: expectations and measurements. Stored as JSON; every field is always there."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Verdict = Literal["passed", "failed", "broken", "skipped"]
EventKind = Literal["fault", "repair", "seen"]


class OutcomePart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Expectation(OutcomePart):
    """A measurement and the most that it may be."""

    name: str
    #: What is measured, with its unit.
    meaning: str
    at_most: float


class DrillMeasurement(OutcomePart):
    """An expectation and what came of it; None: the drill did not get so far."""

    expectation: Expectation
    value: float | None

    @property
    def holds(self) -> bool:
        return self.value is not None and self.value <= self.expectation.at_most


class DrillEvent(OutcomePart):
    """An event, and its time in seconds since the drill began."""

    at_s: float
    kind: EventKind
    text: str


class DrillOutcome(OutcomePart):
    """One run of one drill."""

    version: Literal[1] = 1
    drill: str
    hypothesis: str
    #: ``broken``: it did not come to its end; ``skipped``: it cannot be run here. ``reason`` says why.
    verdict: Verdict
    reason: str = ""
    #: Milliseconds since 1970.
    begun_at_ms: int
    seconds: float
    cluster_id: str
    controllers: int = Field(ge=0)
    brokers: int = Field(ge=0)
    measured: tuple[DrillMeasurement, ...]
    #: Facts that nothing was expected of, by name.
    noted: dict[str, float | str]
    events: tuple[DrillEvent, ...]
    #: When writes were acknowledged, in seconds since the drill began.
    acknowledged_s: tuple[float, ...]
