"""Names from outside reach a terminal as text: they move no cursor, set no title, begin no line, and are no markup."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import unicodedata

import pytest
from rich.progress import Progress, TextColumn
from rich.table import Table

from quorate.scripts.terminal.harmless import HarmlessStream, harmless_output, shown, shown_name
from quorate.scripts.terminal.screen import Screen
from quorate.scripts.terminal.tables import columns

#: Clears the screen, sets its title, turns text around, makes lines, is bold in Rich, and ends what it never began.
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e\r\nquorate: all is well[bold]b[/bold][/foo]\x9b31m\u2028:smile:"


def test_all_that_unicode_calls_control_or_format_is_shown_as_a_number() -> None:
    harmful, unassigned = {"Cc", "Cf", "Zl", "Zp", "Cs"}, "Cn"
    letters = [chr(number) for number in range(sys.maxunicode + 1)]
    left = [letter for letter in letters if unicodedata.category(letter) in harmful and shown_name(letter) == letter]
    assert left == []
    changed = {unicodedata.category(letter) for letter in letters if shown_name(letter) != letter}
    # Some are of a newer Unicode than this Python's.
    assert changed <= {*harmful, unassigned}
    assert (shown("\n\t"), shown_name("\n\t")) == ("\n\t", "\\u000a\\u0009")


def test_json_says_the_same_as_before() -> None:
    document = {"name": HOSTILE + "\U000e0001\udc80"}
    told = shown(json.dumps(document, ensure_ascii=False))
    assert json.loads(told) == document
    assert not any(unicodedata.category(letter).startswith("C") for letter in told)


def test_stream_writes_nothing_harmful_and_is_otherwise_the_stream() -> None:
    out = io.StringIO()
    stream = HarmlessStream(out)
    stream.write("\x1b[2Ja\n")
    stream.writelines(["\x1bb\n", "c\n"])
    print("\u202ed", file=stream)
    assert out.getvalue() == "\\u001b[2Ja\n\\u001bb\nc\n\\u202ed\n"
    assert stream.isatty() is False
    assert stream.getvalue() == out.getvalue()


def test_cell_of_columns_makes_no_line_and_no_column() -> None:
    assert columns([["a\nb\tc", "d"], ["e", "f"]]) == ["a\\u000ab\\u0009c  d", "e                f"]


def test_screen_takes_texts_as_they_are_and_keeps_its_own_colours() -> None:
    out = io.StringIO()
    with harmless_output():
        screen = Screen(file=HarmlessStream(out), width=200, force_terminal=True, color_system="standard")
        table = Table(box=None)
        table.add_column("a", style="red")
        table.add_row(HOSTILE)
        screen.print(table)
        screen.print(HOSTILE, highlight=False)
        with Progress(TextColumn("{task.fields[name]}", markup=False), console=screen) as progress:
            progress.add_task("", name=HOSTILE)
    told = out.getvalue()
    assert "[bold]b[/bold][/foo]" in told
    assert ":smile:" in told
    assert "\x1b[31m" in told
    for harmful in ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\x9b", "\u2028"):
        assert harmful not in told, repr(harmful)


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_commands_print_through_it(stream: str) -> None:
    program = f"""
import sys
sys.argv = ["quorate", "x\\x1b[2Jy"]
from quorate.scripts.cli import __main__ as cli
from quorate.scripts.terminal import command_line
def run(app, arguments):
    sys.{stream}.write(arguments[0])
command_line.run = run
cli.main()
"""
    ended = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True)
    assert getattr(ended, stream) == "x\\u001b[2Jy"
