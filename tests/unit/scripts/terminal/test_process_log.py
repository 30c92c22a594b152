"""The log of a long-running process."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import structlog
from quorate.metadata_log.tracebacks import traceback_text
from quorate.scripts.terminal.process_log import configure_log

def change(password):
    raise ValueError("a bug")

configure_log("info", FORM)
try:
    change("hu" + "sh")
except ValueError as error:
    structlog.get_logger().error("http.incident", FIELD)
"""


FIELDS = pytest.mark.parametrize("field", ["exc_info=error", "exception=traceback_text(error)"])


@FIELDS
@pytest.mark.parametrize("form", ["json", "console"])
def test_traceback_says_where_and_no_variables_value(form: str, field: str) -> None:
    program = PROGRAM.replace("FORM", repr(form)).replace("FIELD", field)
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "a bug" in ended.stderr
    assert "change" in ended.stderr
    assert "hush" not in ended.stderr


def test_what_is_said_to_logging_is_one_event_a_line_like_everything_else() -> None:
    program = """
import logging
from quorate.scripts.terminal.process_log import configure_log

configure_log("info", "json")
logging.getLogger("quorum.fitness").warning("node %d may lead\\nagain", 3)
logging.getLogger("quorum.fitness").debug("not asked for")
try:
    raise ValueError("a bug")
except ValueError as error:
    logging.getLogger("quorum.closed_log").error("closed", exc_info=error)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    first, second = map(json.loads, ended.stderr.splitlines())
    assert (first["event"], first["level"], set(first)) == (
        "node 3 may lead\nagain", "warning", {"event", "level", "timestamp"}
    )  # fmt: skip
    assert second["exception"][0]["exc_value"] == "a bug"


@FIELDS
@pytest.mark.parametrize("form", ["json", "console"])
def test_text_from_outside_makes_no_line_of_its_own_and_moves_no_cursor(form: str, field: str) -> None:
    program = f"""
import logging
import structlog
from quorate.metadata_log.tracebacks import traceback_text
from quorate.scripts.terminal.process_log import configure_log

hostile = "x\\x1b[2J\\u202e\\nerror all is lost"
configure_log("info", {form!r})
structlog.get_logger().warning("refused", path=hostile, listed=[hostile])
logging.getLogger("library").warning("about %s", hostile)
try:
    raise ValueError(hostile.replace("\\n", " "))
except ValueError as error:
    structlog.get_logger().error("a bug", {field})
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "\x1b" not in ended.stderr
    assert "\u202e" not in ended.stderr
    assert "all is lost" in ended.stderr
    assert not any(line.startswith("error all") for line in ended.stderr.splitlines())
    assert "ValueError" in ended.stderr
