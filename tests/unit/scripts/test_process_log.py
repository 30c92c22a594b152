"""The log of a long-running process."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import structlog
from scripts.process_log import configure_log

def change(password):
    raise ValueError("a bug")

configure_log("info", FORM)
try:
    change("hu" + "sh")
except ValueError as error:
    structlog.get_logger().error("http.incident", exc_info=error)
"""


@pytest.mark.parametrize("form", ["json", "console"])
def test_traceback_says_where_and_no_variables_value(form: str) -> None:
    program = PROGRAM.replace("FORM", repr(form))
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "a bug" in ended.stderr
    assert "change" in ended.stderr
    assert "hush" not in ended.stderr
