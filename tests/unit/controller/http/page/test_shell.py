"""The files of the web page: they name each other only, need no exception from its policy, and know every code."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
from typer.testing import CliRunner

from quorate.controller.api.answers.explain_models import CauseCode, ReassignmentProgress, RiskCode
from quorate.controller.api.answers.status_models import Verdict
from quorate.controller.api.resources import BrokerPartitionCounts, BrokerStateName, PartitionCounts, VoterRole
from quorate.controller.http.page.shell import ASSETS, CONTENT_POLICY, assets
from quorate.scripts.cli.__main__ import make_app
from quorate.snapshots.views.state_names import PartitionState, ReplicaState

TEXTS = {path.name: path.read_text(encoding="utf-8") for path in ASSETS.iterdir()}
SCRIPTS = {name: text for name, text in TEXTS.items() if name.endswith(".js")}
PAGE = TEXTS["index.html"]


def keys_of(table: str) -> set[str]:
    """The keys of a table of words.js."""
    (body,) = re.findall(rf"export const {table} = {{(.*?)}};", TEXTS["words.js"], re.DOTALL)
    return set(re.findall(r'(?:^|[{,\s])"?([\w-]+)"?: (?=["\[])', body))


def rows_of(script: str, table: str) -> set[str]:
    """The first words of the rows of a table of a script."""
    (body,) = re.findall(rf"const {table} = \[(.*?)\];", TEXTS[script], re.DOTALL)
    return set(re.findall(r'\["(\w+)",', body))


def test_all_files_of_the_folder_are_served() -> None:
    assert set(assets()) == set(TEXTS)
    assert {asset.data.decode() for asset in assets().values()} == set(TEXTS.values())


def test_files_name_only_files_that_are_there() -> None:
    named = set(re.findall(r'(?:src|href)="assets/([\w.]+)"', PAGE))
    named |= {name for text in SCRIPTS.values() for name in re.findall(r'from "\./([\w.]+)"', text)}
    assert named == set(TEXTS) - {"index.html"}, "a file that nothing names, or a name without its file"


def test_commands_that_the_page_names_are_there() -> None:
    lines = [line.split() for line in re.findall(r"<code>quorate ([^<]+)</code>", PAGE)]
    assert {words[0] for words in lines} == {"status", "explain"}
    for words in lines:
        assert CliRunner().invoke(make_app(words[:1]), [*words, "--help"]).exit_code == 0


@pytest.mark.parametrize("name", sorted(TEXTS))
def test_file_names_no_other_host(name: str) -> None:
    """But the name of SVG's own language, which nobody asks for."""
    text = TEXTS[name].replace("http://www.w3.org/2000/svg", "")
    assert re.findall(r"""\w+://[^\s"'`]+|["'(]//""", text) == []


def test_page_needs_no_exception_from_its_policy() -> None:
    assert "unsafe" not in CONTENT_POLICY
    assert re.findall(r"<script(?![^>]*\bsrc=)[^>]*>|<style|\sstyle=|\son\w+=", PAGE) == []
    assert re.findall(r"url\(|@import", TEXTS["page.css"]) == []


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_script_makes_no_markup_of_texts_and_keeps_nothing_for_good(name: str) -> None:
    banned = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|localStorage|\.cookie\b"
    assert re.findall(banned, SCRIPTS[name]) == []


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_script_looks_for_places_that_the_page_has(name: str) -> None:
    places = set(re.findall(r'getElementById\("([\w-]+)"\)', SCRIPTS[name]))
    assert places <= set(re.findall(r'\bid="([\w-]+)"', PAGE))


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("VERDICTS", Verdict),
        ("CAUSES", CauseCode),
        ("RISKS", RiskCode),
        ("BROKER_STATES", BrokerStateName),
        ("ROLES", VoterRole),
        ("PROGRESS", ReassignmentProgress),
    ],
)
def test_page_has_words_for_every_code_of_the_answers(table: str, codes: Any) -> None:
    assert keys_of(table) == set(get_args(codes))


@pytest.mark.parametrize(
    ("script", "table", "names"),
    [
        ("racks.js", "MEASURES", set(BrokerPartitionCounts.model_fields)),
        ("partitions.js", "CONDITIONS", set(PartitionCounts.model_fields)),
        ("partitions.js", "PARTITION_STATES", set(get_args(PartitionState))),
        ("partitions.js", "REPLICA_STATES", set(get_args(ReplicaState))),
    ],
)
def test_page_draws_what_answers_have(script: str, table: str, names: set[str]) -> None:
    rows = rows_of(script, table)
    assert rows
    assert rows <= names
