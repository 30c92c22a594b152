"""How commands are run: their names, and what becomes of what the system refuses."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest
import typer

from quorate.metadata_log.errors import QuorateError
from quorate.scripts.cluster.new_directories import all_or_nothing
from quorate.scripts.cluster.plan import ClusterError
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run

ROOT = Path(__file__).resolve().parents[4]
FULL = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (QuorateError("no"), exit_codes.REFUSED, "thing: no\n"),
        (FULL, exit_codes.REFUSED, "thing: No space left on device\n"),
        (
            OSError(errno.EROFS, os.strerror(errno.EROFS), "/x"),
            exit_codes.REFUSED,
            "thing: /x: Read-only file system\n",
        ),
        (KeyboardInterrupt(), exit_codes.INTERRUPTED, ""),
    ],
    ids=["ours", "full disk", "read-only disk", "Ctrl-C"],
)
def test_what_is_no_mistake_of_ours_is_a_sentence(
    failure: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = typer.Typer(pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise failure

    with pytest.raises(SystemExit) as ended:
        run(app, [], "scripts/thing")
    assert (ended.value.code, capsys.readouterr().err.strip("\n")) == (code, said.strip("\n"))


def test_exit_codes_are_those_that_the_page_promises() -> None:
    """Programs go by them: none is changed, and a new one is told."""
    page = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    told = page[page.index("## Exit codes") :].split("\n\n")[1]
    of_the_page = {int(number): word for number, word in re.findall(r"(\d+) (\w+)", told)}
    codes = {value: name for name, value in vars(exit_codes).items() if name.isupper()}
    assert codes == {
        0: "DONE",
        1: "REFUSED",
        2: "USAGE",
        3: "UNREACHABLE",
        4: "OUTCOME_UNKNOWN",
        5: "CRITICAL",
        70: "FAULT",
        130: "INTERRUPTED",
    }
    assert of_the_page == {
        0: "done",
        1: "refused",
        2: "usage",
        3: "unreachable",
        4: "outcome",
        5: "critical",
        70: "a",
        130: "Ctrl",
    }


def launchers() -> dict[str, str]:
    """Those that start a program of ours with typer, by name, and its source."""
    found = {}
    for path in (ROOT / "scripts").iterdir():
        if path.is_file() and os.access(path, os.X_OK):
            module = re.search(r"-m (quorate\.scripts[\w.]+)", path.read_text(encoding="utf-8"))
            if module and module[1] != "quorate.scripts.cli":
                stem = ROOT / "src" / module[1].replace(".", "/")
                source = stem / "__main__.py" if stem.is_dir() else stem.with_suffix(".py")
                found[path.name] = source.read_text(encoding="utf-8")
    return found


def test_every_launcher_is_called_in_its_usage_as_it_is_started() -> None:
    found = launchers()
    assert {"netsim", "fuzz-peer", "simulate", "bench", "spark-cluster"} <= found.keys()
    assert [name for name, source in found.items() if not re.search(rf'"scripts/{name}[ "]', source)] == []


def fill(directory: Path) -> None:
    with all_or_nothing(directory) as making:
        (making / "half").write_text("x", encoding="utf-8")
        raise FULL


def test_directory_for_which_there_is_no_room_is_named_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"new cannot be made: No space left on device; nothing is left of it"):
        fill(tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
