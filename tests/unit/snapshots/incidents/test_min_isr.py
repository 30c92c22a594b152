"""What min.insync.replicas was, offset by offset."""

import pytest

from quorate.snapshots.incidents.min_isr import BROKER, TOPIC, ConfigSpan, MinIsrStep, min_isr_steps


def span(kind: int, name: str, value: str | None, start: int, end: int | None) -> ConfigSpan:
    return ConfigSpan("c", kind, name, value, start, start, end, end)


def test_a_topics_value_goes_before_the_default_while_it_holds() -> None:
    steps = min_isr_steps([span(BROKER, "", "2", 10, None), span(TOPIC, "t", "3", 20, 30)], default=1)

    assert steps.by_topic["c", None] == [MinIsrStep(-1, 10, 0, 1), MinIsrStep(10, None, 10, 2)]
    assert steps.by_topic["c", "t"] == [
        MinIsrStep(-1, 10, 0, 1),
        MinIsrStep(10, 20, 10, 2),
        MinIsrStep(20, 30, 20, 3),
        MinIsrStep(30, None, 30, 2),
    ]


def test_one_brokers_own_value_means_nothing() -> None:
    assert min_isr_steps([span(BROKER, "12", "2", 10, None)], default=1).by_topic == {}


@pytest.mark.parametrize("value", ["many", "\u00b2", "9" * 5_000, ""])
def test_a_value_that_is_no_number_counts_as_none(value: str) -> None:
    assert min_isr_steps([span(TOPIC, "t", value, 10, None)], default=1).by_topic["c", "t"] == [
        MinIsrStep(-1, None, 0, 1)
    ]


def test_a_value_is_read_as_java_reads_it() -> None:
    steps = min_isr_steps([span(TOPIC, "t", " +2 ", 10, None)], default=1).by_topic["c", "t"]
    assert steps[-1] == MinIsrStep(10, None, 10, 2)


def test_a_value_that_says_the_same_makes_no_step() -> None:
    assert min_isr_steps([span(TOPIC, "t", "1", 10, None)], default=1).by_topic["c", "t"] == [
        MinIsrStep(-1, None, 0, 1)
    ]
