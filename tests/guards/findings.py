"""A plugin for ``scripts/test --explore``: every test that fails is a finding, with the example on which it did."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from quorate.scripts.exploration.findings import Finding

#: How Hypothesis says on what a property failed: a call of the test.
_FAILING = re.compile(r"(?:Failing test case|Falsifying example): (?P<call>\w+\(.*\))\s*", re.DOTALL)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where findings are written."""
    parser.addoption("--findings", type=Path, required=True, help="directory for what fails")


def example_line(note: str, drawn: Collection[str]) -> str | None:
    """The decorator that has a property try this example on every run.

    None where a note is none of an example, or where its values are no Python: drawn within the test, or objects that
    show themselves otherwise.

    Args:
        drawn: the arguments that Hypothesis gives; others are of fixtures.
    """
    matched = _FAILING.fullmatch(note.strip())
    if matched is None:
        return None
    try:
        call = ast.parse(matched["call"], mode="eval").body
    except SyntaxError:
        return None
    assert isinstance(call, ast.Call)
    given = [keyword for keyword in call.keywords if keyword.arg in drawn]
    if any(isinstance(node, ast.Constant) and node.value is ... for keyword in given for node in ast.walk(keyword)):
        return None
    return f"@example({', '.join(f'{keyword.arg}={ast.unparse(keyword.value)}' for keyword in given)})"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Write down what failed, as soon as it did: the run may be broken off."""
    report: Any = yield
    if report.failed and call.excinfo is not None:
        _finding(item, call.excinfo.value, report).write(item.config.getoption("findings"))
    return report


def _finding(item: pytest.Item, error: BaseException, report: pytest.TestReport) -> Finding:
    options = item.config.option
    seeds = f"--hypothesis-seed={options.hypothesis_seed} --randomly-seed={options.randomly_seed}"
    path = item.path.relative_to(item.config.rootpath) if item.path.is_relative_to(item.config.rootpath) else item.path
    node = f"{path}::{item.nodeid.partition('@')[0].partition('::')[2]}"
    notes = list(_notes(error))
    drawn = getattr(getattr(getattr(item, "obj", None), "hypothesis", None), "_given_kwargs", ())
    examples = [line for note in notes if (line := example_line(note, drawn)) is not None]
    blob = re.search(r"@reproduce_failure\([^)]*\)", "\n".join(notes))
    if examples:
        keep = f"{' and '.join(examples)} above {node}"
    elif blob is not None:
        keep = f"a test of its own, from the example below; for now {blob[0]} above {node}"
    else:
        keep = "a test of its own: it draws no example, so it is the order of the tests or the time that matters"
    return Finding(
        name=re.sub(r"[^\w.-]+", "-", node).strip("-")[-120:],
        again=f"scripts/test --hypothesis-profile=explore {seeds} '{node}'",
        keep=keep,
        story="\n".join([*notes, "", report.longreprtext]),
    )


def _notes(error: BaseException) -> Iterator[str]:
    """What Hypothesis adds to an error, or to each of several."""
    yield from getattr(error, "__notes__", ())
    if isinstance(error, BaseExceptionGroup):
        for one in error.exceptions:
            yield from _notes(one)
