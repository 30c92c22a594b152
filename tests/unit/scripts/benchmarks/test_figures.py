"""What the benchmarks make of their samples."""

import pytest

from quorate.scripts.benchmarks.figures import Figure, FigureTarget, number, percentile


def test_figure_with_a_bound_from_above_is_reached_by_its_median() -> None:
    assert Figure("time", "s", (0.1, 0.2, 9.0), (FigureTarget(0.2),)).is_reached
    assert not Figure("time", "s", (0.1, 0.3, 0.4), (FigureTarget(0.2),)).is_reached


def test_figure_with_a_bound_from_below_is_reached_by_its_median() -> None:
    assert Figure("rate", "/s", (5.0, 50.0, 60.0), (FigureTarget(50, is_most=False),)).is_reached
    assert not Figure("rate", "/s", (5.0, 49.0, 60.0), (FigureTarget(50, is_most=False),)).is_reached


def test_figure_with_two_targets_is_reached_if_both_are() -> None:
    targets = (FigureTarget(0.1), FigureTarget(0.25, percentile=90))
    samples = (0.05,) * 8 + (0.3, 0.3)

    assert not Figure("time", "s", samples, targets).is_reached
    assert Figure("time", "s", samples, targets[:1]).is_reached


def test_figure_without_target_has_no_verdict() -> None:
    assert Figure("time", "s", (1.0,)).is_reached is None


def test_figure_as_data_names_every_sample_and_each_target() -> None:
    data = Figure("time", "s", (3.0, 1.0, 2.0), (FigureTarget(1.0, note="on a quick disk"),)).as_data()

    assert (data["median"], data["min"], data["max"], data["samples"]) == (2.0, 1.0, 3.0, [3.0, 1.0, 2.0])
    assert data["targets"] == [{"percentile": 50, "at_most": 1.0, "note": "on a quick disk", "is_reached": False}]


@pytest.mark.parametrize(("percent", "expected"), [(50, 10.5), (90, 18), (100, 20)])
def test_percentile_is_a_sample_that_so_many_do_not_exceed(percent: int, expected: float) -> None:
    assert percentile(range(1, 21), percent) == expected


@pytest.mark.parametrize(
    ("value", "text"), [(66_000.4, "66,000"), (1000, "1,000"), (999.4, "999"), (0.8, "0.8"), (0.04567, "0.0457")]
)
def test_number_has_three_digits_and_thousands_apart(value: float, text: str) -> None:
    assert number(value) == text
