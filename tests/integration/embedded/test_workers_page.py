"""The program of docs/workers.md does what the page says, in a process of its own."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "workers.md"
(PROGRAM,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
WAIT_S = 60


@pytest.mark.parametrize(
    ("right", "wrong", "why"),
    [("", "", ""), ('{"kv-0": 0}', '{"kv-0": 1}', "AssertionError"), ("== [7001]", "== [7002]", "AssertionError")],
)
def test_program_of_the_page_runs_to_its_end_and_a_damaged_one_is_found(
    right: str, wrong: str, why: str, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    assert right in PROGRAM
    program.write_text(PROGRAM.replace(right, wrong) if right else PROGRAM, encoding="utf-8")

    command = [sys.executable, "-P", "-W", "error", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=WAIT_S)

    assert (done.returncode == 0) is not bool(why), done.stderr
    assert why in done.stderr
