"""Manual pages: one of every command, true to its help, and read by groff without a complaint."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.cli.shell.manual_pages import _escaped
from quorate.scripts.terminal import exit_codes
from tests.unit.scripts.cli.test_reading_commands import leaves_of_all


@pytest.fixture(scope="module")
def section(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("man")
    done = CliRunner().invoke(make_app(["manual"]), ["manual", "export", str(directory)])
    assert done.exit_code == exit_codes.DONE, done.output
    return directory / "man1"


def test_there_is_a_page_of_every_command_with_every_option_of_it(section: Path) -> None:
    for name, command in leaves_of_all():
        text = (section / f"quorate-{name.replace(' ', '-')}.1").read_text(encoding="utf-8")
        assert f"quorate {name}".replace("-", r"\-") in text, "the synopsis is as it is typed"
        options = {option for one in command.params if not one.hidden for option in one.opts if option[:2] == "--"}
        assert {option for option in options if option.replace("-", r"\-") not in text} == set(), name
        assert ("Example" in (command.help or "")) == (".SH EXAMPLES" in text), name


@pytest.mark.parametrize(
    ("page", "arguments"),
    [
        ("quorate-apply", "FILE"),
        ("quorate-certs-issue", "kind ID|NAME"),
        ("quorate-brokers-drain", "ID..."),
        ("quorate-undo", "[REQUEST-ID]"),
        ("quorate-explain", "[SUBJECT...]"),
        ("quorate-recover-plan", "[DIRECTORY...]"),
        ("quorate-node-cordon-directory", "NAME [DIR...]"),
        ("quorate-topics", "COMMAND [ARGS]..."),
    ],
)
def test_synopsis_has_arguments_as_they_are_typed(section: Path, page: str, arguments: str) -> None:
    line = (section / f"{page}.1").read_text(encoding="utf-8").split("\n.SH SYNOPSIS\n")[1].splitlines()[0]
    assert line.replace(r"\-", "-").endswith(rf"\fR [OPTIONS] {arguments}")


def test_no_synopsis_has_a_stray_or_a_doubled_bracket(section: Path) -> None:
    synopses = {
        page.name: page.read_text(encoding="utf-8").split(".SH SYNOPSIS\n")[1].splitlines()[0]
        for page in section.iterdir()
    }
    assert {name: line for name, line in synopses.items() if re.search(r"[{}]|\[\[|\]\]|\.{4}", line)} == {}


def test_overview_names_all_pages_and_all_exit_codes(section: Path) -> None:
    text = (section / "quorate.1").read_text(encoding="utf-8")
    named = set(re.findall(r"\\fB(quorate[^\\]*(?:\\-[^\\]*)*)\\fR\(1\)", text))
    assert {name.replace(r"\-", "-") for name in named} >= {"quorate-topics", "quorate-can-stop", "quorate-manual"}
    codes = {value for name, value in vars(exit_codes).items() if name.isupper()}
    assert {int(code) for code in re.findall(r"^\\fB(\d+)\\fR$", text, re.MULTILINE)} == codes


def test_links_between_pages_lead_to_pages(section: Path) -> None:
    for page in section.iterdir():
        text = page.read_text(encoding="utf-8")
        links = [link.replace(r"\-", "-") for link in re.findall(r"^\\fB(\S+?)\\fR\(1\)", text, re.MULTILINE)]
        assert [link for link in links if not (section / f"{link}.1").is_file()] == [], page.name


def test_nothing_of_a_text_is_a_request_to_groff() -> None:
    assert _escaped(".so /etc/passwd") == r"\&.so /etc/passwd"
    assert _escaped("'so x") == r"\&\(aqso x"
    assert _escaped(r"a\fBb") == r"a\efBb"


def test_groff_has_no_complaint(section: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not on this machine")
    pages = [str(page) for page in sorted(section.iterdir())]
    done = subprocess.run(
        ["groff", "-man", "-ww", "-z", "-Tutf8", *pages], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_directory_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = CliRunner().invoke(make_app(["manual"]), ["manual", "export", str(tmp_path / "file")])
    assert "Not a directory" in str(done.exception)
