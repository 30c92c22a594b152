"""The controller with uncommitted state, under everything that can happen to its log.

``scripts/test --hypothesis-profile=long tests/property/controller/test_controller_machine.py`` tries more than a
thousand stories, others each time.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from quorate.controller.decisions import record_slices
from quorate.controller.partitions import mass_changes
from quorate.metadata_log.errors import QuorateError
from tests.property.controller_machine.machine import ControllerMachine
from tests.property.controller_machine.sabotages import SABOTAGES, Sabotage

#: A search takes as long as it was asked to; without one these are some ten seconds of one core.
pytestmark = pytest.mark.timeout(0)
EXAMPLES = 24
STEPS = 30
#: What Hypothesis draws depends on which of our modules are loaded (it takes constants from them), thus on the tests
#: that ran before. Most sabotages are found within ten stories, the rarest take some seventy on average: so many that
#: no order of tests misses them. The search ends with the first find.
SABOTAGED_EXAMPLES = 1_000


@pytest.fixture(autouse=True)
def _short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes are cut after a few partitions, so that small clusters have them."""
    for module in (mass_changes, record_slices):
        monkeypatch.setattr(module, "ROWS_PER_SLICE_MAX", 2)


def usual_settings() -> settings:
    """The same stories on every run, and few of them, unless a profile asks for a search."""
    profile = settings.default
    assert profile is not None
    examples = EXAMPLES if profile.derandomize else profile.max_examples // 4
    return settings(max_examples=examples, stateful_step_count=STEPS)


@pytest.mark.hypothesis
def test_controllers_whatever_happens_to_their_log_keep_every_promise() -> None:
    run_state_machine_as_test(ControllerMachine, settings=usual_settings())


@pytest.mark.parametrize("sabotage", SABOTAGES, ids=lambda sabotage: sabotage.__name__)
def test_machine_with_a_sabotaged_controller_notices(sabotage: Sabotage, monkeypatch: pytest.MonkeyPatch) -> None:
    sabotage(monkeypatch)
    # The first failure is enough: nothing is made smaller, nothing is explained.
    found = settings(
        max_examples=SABOTAGED_EXAMPLES,
        stateful_step_count=STEPS,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.raises((AssertionError, QuorateError)):
        run_state_machine_as_test(ControllerMachine, settings=found)
