"""`quorate watching export`: files that are whole, and none that is written over unasked."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cli.watching import NotExported
from quorate.scripts.watching.files import FILES, content


def export(*arguments: str) -> Result:
    words = ["watching", "export", *arguments]
    return CliRunner().invoke(make_app(words), words)


def test_files_are_written_and_each_is_said_what_it_is_for(tmp_path: Path) -> None:
    there = tmp_path / "made" / "monitoring"
    done = export(str(there))
    assert done.exit_code == 0
    assert {path.name: path.read_bytes() for path in there.iterdir()} == {name: content(name) for name in FILES}
    assert [line.split(": ")[0] for line in done.output.splitlines()] == [str(there / name) for name in FILES]
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in there.iterdir())


def test_what_is_there_stays_unless_it_is_said_that_it_may_go(tmp_path: Path) -> None:
    kept = tmp_path / "rules.yml"
    kept.write_text("mine")
    refused = export(str(tmp_path))
    assert isinstance(refused.exception, NotExported)
    assert str(refused.exception) == f"{tmp_path} holds rules.yml already: say --replace to write over them"
    assert [path.name for path in tmp_path.iterdir()] == ["rules.yml"]
    assert kept.read_text() == "mine"

    assert export(str(tmp_path), "--replace").exit_code == 0
    assert kept.read_bytes() == content("rules.yml")


def test_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    refused = export(str(tmp_path / "file" / "monitoring"))
    assert isinstance(refused.exception, NotExported)
    assert "file" in str(refused.exception)
    assert "cannot be written: Not a directory" in str(refused.exception)
