"""Which cluster a command is about, of all that is said of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import typer

from quorate.scripts.logins import cluster_variables
from quorate.scripts.logins.kept_contexts import KeptContext, KeptContexts, NoSuchContext, write_contexts
from quorate.scripts.logins.private_state import STATE_VARIABLE
from quorate.scripts.terminal.places.chosen import chosen_environment, kept_contexts

PROD = KeptContext(name="prod", controllers="p:1", secret_file="/prod.token")
TWIN = KeptContext(name="twin", directory="/twin", ca_files="/ca.pem", cert_file="/c", key_file="/k", insecure=True)
KEPT = KeptContexts(current="prod", contexts=(PROD, TWIN))
IN_USE = {"QUORATE_CONTROLLERS": "p:1", "QUORATE_SHARED_SECRET_FILE": "/prod.token"}
ELSEWHERE = {"QUORATE_CONTROLLERS": "a:1", "QUORATE_USER": "ana"}
OTHERS = {"PATH": "/bin", "EMPTY": ""}


def chosen(arguments: str, environment: Mapping[str, str]) -> dict[str, str]:
    found = chosen_environment(arguments.split(), {**OTHERS, **environment}, lambda: KEPT)
    assert OTHERS.items() <= found.items()
    return {name: value for name, value in found.items() if name not in OTHERS}


@pytest.mark.parametrize(
    ("arguments", "environment", "expected"),
    [
        ("", {}, IN_USE),
        ("", {"QUORATE_USER": "ana", "QUORATE_PASSWORD_FILE": "x", "QUORATE_MECHANISM": "m"}, IN_USE),
        ("", ELSEWHERE, ELSEWHERE),
        ("", {"QUORATE_CONTROLLERS": ""}, IN_USE),
        ("", {"QUORATE_DIR": "d"}, {"QUORATE_DIR": "d"}),
        ("--dir d", {"QUORATE_CONTROLLERS": "a:1"}, {"QUORATE_DIR": "d"}),
        ("--dir=d --controllers a:1", {}, {"QUORATE_DIR": "d"}),
        ("--controllers a:1", {"QUORATE_CA_FILE": "ca"}, {"QUORATE_CA_FILE": "ca"}),
        ("--context prod", {"QUORATE_CONTROLLERS": "a:1", "QUORATE_CA_FILE": "ca"}, IN_USE),
        ("--context=prod", {"QUORATE_DIR": "d"}, IN_USE),
        ("topic -- --context twin", {}, IN_USE),
    ],
)  # fmt: skip
def test_what_is_said_nearest_to_the_command_counts_and_no_secret_is_shown_elsewhere(
    arguments: str, environment: dict[str, str], expected: dict[str, str]
) -> None:
    assert {name: value for name, value in chosen(arguments, environment).items() if value} == expected


def test_context_is_all_that_it_says() -> None:
    assert chosen("--context twin", {"QUORATE_SHARED_SECRET_FILE": "other", "QUORATE_CONTEXT": "prod"}) == {
        "QUORATE_CONTEXT": "prod",
        "QUORATE_DIR": "/twin",
        "QUORATE_CA_FILE": "/ca.pem",
        "QUORATE_CERT_FILE": "/c",
        "QUORATE_KEY_FILE": "/k",
        "QUORATE_INSECURE": "1",
    }


def test_context_takes_the_place_of_every_variable_that_says_where_or_who() -> None:
    """Nobody is asked in a name, and nothing is shown, that is for another cluster."""
    variables = {value for name, value in vars(cluster_variables).items() if name.endswith("_VARIABLE")}
    assert "QUORATE_PRINCIPAL" in variables
    assert chosen("--context prod", dict.fromkeys(variables, "of another")) == IN_USE


@pytest.mark.parametrize(
    ("arguments", "environment", "said"),
    [
        ("--context prod --dir d", {}, "--context and --dir both say which cluster"),
        ("--context prod --controllers a:1", {}, "--context and --controllers both say which cluster"),
        ("", {"QUORATE_CONTEXT": "prod", "QUORATE_DIR": "d"}, "QUORATE_CONTEXT and QUORATE_DIR both say which cluster"),
    ],
)
def test_two_clusters_are_refused(arguments: str, environment: dict[str, str], said: str) -> None:
    with pytest.raises(typer.BadParameter, match=said):
        chosen(arguments, environment)


@pytest.mark.parametrize(("arguments", "environment"), [("--context no", {}), ("", {"QUORATE_CONTEXT": "no"})])
def test_context_that_is_not_there_is_told_with_those_that_are(arguments: str, environment: dict[str, str]) -> None:
    with pytest.raises(NoSuchContext, match="there is no context 'no'; there are: prod, twin"):
        chosen(arguments, environment)


def test_where_none_are_kept_none_is_in_use_and_none_is_found() -> None:
    assert chosen_environment([], OTHERS, lambda: None) == OTHERS
    with pytest.raises(NoSuchContext, match="there is no context 'prod'; there are: none"):
        chosen_environment(["--context", "prod"], OTHERS, lambda: None)


def test_contexts_that_are_kept_are_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(STATE_VARIABLE, str(tmp_path))
    assert kept_contexts() is None
    write_contexts(KEPT)
    assert kept_contexts() == KEPT


def test_contexts_are_read_where_they_matter_only() -> None:
    """A file that cannot be used is in nobody's way who names his cluster."""

    def fail() -> KeptContexts:
        raise AssertionError("nobody needs them")

    for arguments, environment in (("--dir d", {}), ("", {"QUORATE_CONTROLLERS": "a:1"})):
        chosen_environment(arguments.split(), environment, fail)
