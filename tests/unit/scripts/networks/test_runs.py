"""The parts of a run on a network that need none: damaged histories, figures, what the command says."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.scripts.drills.outcome import DrillMeasurement, DrillOutcome, Expectation
from quorate.scripts.networks.command import NOT_HERE, app
from quorate.scripts.networks.damage import is_noticed
from quorate.scripts.networks.figures import figures
from quorate.scripts.networks.scenarios import SCENARIOS
from quorate.scripts.simulation.system.history import CallHistory
from quorate.scripts.simulation.system.topic_register import Configure, Create, ReadTopic, TopicState

TOPIC_ID = bytes(range(16))


def history(value: str | None) -> CallHistory:
    """A topic is made, configured by somebody who is not answered, and read."""
    made = CallHistory()
    created = made.begin("a", 0.0, Create(2, "1000"))
    made.succeeded(created, 1.0, Create(2, "1000", TOPIC_ID))
    made.begin("a", 2.0, Configure("2000"))
    read = made.begin("a", 3.0, ReadTopic(None))
    made.succeeded(read, 4.0, ReadTopic(TopicState(TOPIC_ID, 2, value)))
    return made


@pytest.mark.parametrize("value", ["1000", "2000"])
def test_a_damaged_copy_of_a_right_history_is_noticed(value: str) -> None:
    right = history(value)
    assert right.check() == (None, 0)
    assert is_noticed(right)
    assert right.check() == (None, 0)


def test_a_history_without_a_read_proves_nothing_about_the_checker() -> None:
    assert not is_noticed(CallHistory())


def outcome(value: float | None, verdict: str) -> DrillOutcome:
    expectation = Expectation(name="next_write_s", meaning="until the next write, s", at_most=3)
    return DrillOutcome.model_validate(
        {
            "drill": "switch-outage",
            "hypothesis": "",
            "verdict": verdict,
            "begun_at_ms": 0,
            "seconds": 1.0,
            "cluster_id": "",
            "controllers": 3,
            "brokers": 2,
            "measured": (DrillMeasurement(expectation=expectation, value=value),),
            "noted": {"seed": 7, "frames": 1234},
            "events": (),
            "acknowledged_s": (),
        }
    )


def test_figures_give_the_least_the_median_and_the_most_of_the_runs_that_have_one() -> None:
    runs = [outcome(1.0, "passed"), outcome(None, "broken"), outcome(9.5, "failed"), outcome(2.0, "passed")]
    title, next_write, frames = (line.split() for line in figures(runs))
    assert title == ["switch-outage:", "2", "of", "4", "passed"]
    assert next_write[:6] == ["next_write_s", "1", "2", "9.50", "of", "3,"]
    assert next_write[-1] == "3"
    assert frames[:4] == ["frames", "1,234", "1,234", "1,234"]


def test_where_namespaces_are_not_allowed_nothing_is_run_and_that_is_said() -> None:
    result = CliRunner().invoke(app, ["run", "all"], obj="Operation not permitted")
    assert result.exit_code == NOT_HERE
    assert "skipped, no namespaces here: Operation not permitted" in result.stderr


def test_an_unknown_scenario_is_refused_with_those_there_are() -> None:
    result = CliRunner().invoke(app, ["run", "flood"])
    assert result.exit_code == 2
    assert "'flood'" in result.stderr


def test_the_list_names_every_scenario_with_its_claim() -> None:
    result = CliRunner().invoke(app, ["list"])
    assert result.exit_code == 0
    for scenario in SCENARIOS.values():
        assert f"{scenario.name} (" in result.stdout
        assert scenario.claim in result.stdout


def test_the_documentation_has_every_scenario_and_no_other() -> None:
    text = (Path(__file__).resolve().parents[4] / "docs" / "networks.md").read_text(encoding="utf-8")
    table = text.partition("## The scenarios")[2]
    named = [line.split("`")[1] for line in table.splitlines() if line.startswith("| `")]
    assert named == list(SCENARIOS)
