"""Where files are read, the address of a controller is no path that is not there: it is a mistake in use."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.terminal import exit_codes

ADDRESS = "http://127.0.0.1:18081"


@pytest.mark.parametrize(
    "arguments",
    [
        ("snapshot", "restore", "--node-id", "1", "--to", "new"),
        ("snapshot", "export", "--to", "new"),
        ("snapshot", "list"),
        ("image", "show"),
        ("topics", "list"),
        ("status",),
        ("refusals",),
        ("up",),
    ],
)
def test_address_is_refused_where_files_are_read(arguments: tuple[str, ...]) -> None:
    words = [*arguments, "--from", ADDRESS]
    done = CliRunner().invoke(make_app(words), words)
    said = " ".join(done.output.replace("│", " ").split())
    assert done.exit_code == exit_codes.USAGE, said
    assert f"{ADDRESS} is an address, and files are read here: say the path of a metadata directory" in said


def test_path_that_only_looks_like_one_is_read(tmp_path: Path) -> None:
    words = ["image", "show", "--from", f"{tmp_path}/http:/x"]
    done = CliRunner().invoke(make_app(words), words)
    assert "is an address" not in done.output
