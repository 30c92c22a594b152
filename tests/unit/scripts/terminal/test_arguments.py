"""What commands read out of their arguments, and what they refuse."""

from __future__ import annotations

import io
import sys

import pytest
import typer

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.arguments import (
    broker_ids,
    confirm,
    exact_names,
    key_values,
    patterns_text,
    replica_lists,
    sendable,
    topic_partitions,
    wanted_parameters,
)
from quorate.scripts.terminal.output import counted
from quorate.scripts.terminal.programs.failures import Failed


def test_lists_of_replicas_are_taken_apart() -> None:
    assert replica_lists("11:12,12:13,7") == [[11, 12], [12, 13], [7]]


@pytest.mark.parametrize(
    "text", ["", "1,", "1::2", "a", "-1", "1:2147483648", "\u0663", ":".join("1" * 65), ",".join("1" * 10_001)]
)
def test_text_that_is_no_list_of_replicas_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        replica_lists(text)


def test_brokers_are_named_one_by_one_or_as_ranges() -> None:
    assert broker_ids("20,11-13,12") == [11, 12, 13, 20]


@pytest.mark.parametrize("text", ["", "a", "1,", "3-1", "1-", "-1", "1-2-3", "0-10000", "2147483648"])
def test_text_that_names_no_brokers_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        broker_ids(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("2,14-11", "'14-11' is no range: say the lower id first, 11-14"),
        ("0-10000", "'0-10000' is a range of 10001 brokers: 10000 is the most"),
    ],
)
def test_range_that_is_none_is_refused_with_its_rule(text: str, says: str) -> None:
    with pytest.raises(typer.BadParameter, match=says) as refused:
        broker_ids(text, "--exclude")
    assert refused.value.param_hint == "--exclude"


def test_partitions_are_named_by_topic_and_number() -> None:
    assert list(topic_partitions(["orders-17", "a-b-0"])) == [("orders", 17), ("a-b", 0)]


@pytest.mark.parametrize(
    "text",
    ["orders", "orders-", "-1", "orders-x", "orders-2147483648", "orders-" + "9" * 5_000],
)
def test_text_that_names_no_partition_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        list(topic_partitions([text]))


def test_config_is_a_name_and_a_value_that_is_not_repeated_where_it_is_wrong() -> None:
    assert key_values(["a=b=c", "d="]) == [("a", "b=c"), ("d", "")]
    with pytest.raises(typer.BadParameter) as refused:
        key_values(["=secret"])
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["x" * 32_768, "\udcff"])
def test_text_that_no_request_can_hold_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter):
        sendable(text)
    with pytest.raises(typer.BadParameter):
        key_values([f"name={text}"])


def test_patterns_become_one_parameter_and_names_are_told_from_them() -> None:
    assert patterns_text(["orders*", "a"]) == "orders*,a"
    assert patterns_text(None) == ""
    assert exact_names(["orders*", "a,b", "a"]) == ["a", "b"]


def test_filter_names_only_what_is_wanted() -> None:
    wanted = wanted_parameters("a*", None, 12, under_replicated=True, offline=False, under_min_isr=True)
    assert wanted == {"names": "a*", "conditions": "under-replicated,under-min-isr", "leader": 12}


class Typed(io.StringIO):
    """What somebody types at a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "code"), [("y\n", None), ("n\n", exit_codes.REFUSED), ("\n", exit_codes.REFUSED)])
def test_user_at_a_terminal_is_asked(
    answer: str, code: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(answer))
    if code is None:
        confirm("delete it", yes=False)
    else:
        with pytest.raises(Failed, match="nothing was done") as ended:
            confirm("delete it", yes=False)
        assert ended.value.code == code
    seen = capsys.readouterr()
    assert ("Delete it?" in seen.err, seen.out) == (True, "")


def test_nobody_is_asked_who_has_said_yes_or_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    confirm("delete it", yes=True)
    with pytest.raises(Failed, match=r"^nobody can be asked here: to delete it, say --yes$") as ended:
        confirm("delete it", yes=False)
    assert ended.value.code == exit_codes.USAGE


@pytest.mark.parametrize(("number", "text"), [(0, "0 topics"), (1, "1 topic"), (2, "2 topics")])
def test_what_is_counted_agrees_with_its_number(number: int, text: str) -> None:
    assert counted(number, "topic") == text
