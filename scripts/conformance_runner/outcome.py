"""The outcome of one vector."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from quorate.scripts.conformance_runner.comparison import Difference


@dataclass(frozen=True, slots=True)
class VectorOutcome:
    """A vector and where we differ from it; nowhere = passed."""

    vector_id: str
    differences: list[Difference]
    #: For a scenario: steps taken as (operation, whether it agreed).
    steps: Counter[tuple[str, bool]] = field(default_factory=Counter)
    #: For a scenario: the number of the step that differs.
    failed_step: int | None = None
    #: For a scenario: it passed, and ended early at a change that Kafka writes twice (``repetition``).
    has_repetition: bool = False

    @property
    def has_passed(self) -> bool:
        """Whether nothing differs."""
        return not self.differences
