"""Sessions in documents: read, run by a real shell, compared."""

import os
from pathlib import Path

import pytest

from quorate.scripts.tour.shell import BashShell, SessionFailed
from quorate.scripts.tour.transcript import differences, parse, replayed

DOCUMENT = """\
# A session

Prose with `$ no command` in it.

```console
$ echo one; echo two >&2
one

$ echo three >&2; exit 3
three
[exit code 3]

$ false
[exit code 1]
```

```
$ not run
```

```console
$ echo 'took 1.5 s, at offset 17 of 127.0.0.1:1234'
took 99 ms, at offset 4 of 127.0.0.1:5
```
"""


def run(text: str, directory: Path) -> str:
    with BashShell(directory, dict(os.environ)) as shell:
        return replayed(parse(text), shell).text


def test_document_is_written_as_it_was_read() -> None:
    assert parse(DOCUMENT).text == DOCUMENT


def test_session_prints_what_stands_there_but_for_what_varies(tmp_path: Path) -> None:
    now = run(DOCUMENT, tmp_path)
    assert "at offset 17 of 127.0.0.1:1234" in now
    assert differences(parse(DOCUMENT), parse(now)) == []


@pytest.mark.parametrize(
    ("written", "is_now"),
    [("three\n[", "["), ("[exit code 1]", ""), ("took 99", "was 99"), ("echo one", "echo 1")],
)
def test_whatever_else_is_another_is_found(tmp_path: Path, written: str, is_now: str) -> None:
    other = DOCUMENT.replace(written, is_now)
    found = differences(parse(other), parse(run(other, tmp_path)))
    assert len(found) >= 2
    assert found[0].startswith("$ ")


def test_command_in_the_background_ends_with_the_session(tmp_path: Path) -> None:
    text = "```console\n$ echo $$ > number; echo begins; echo is ready; exec sleep 1000 &\n```\n"
    with BashShell(tmp_path, dict(os.environ)) as shell:
        assert next(replayed(parse(text), shell).commands).output == ("is ready",)
        number = (tmp_path / "number").read_text().strip()
        assert Path(f"/proc/{number}").exists()
    assert not Path(f"/proc/{number}").exists()


def test_command_in_the_background_that_ends_early_is_told(tmp_path: Path) -> None:
    with pytest.raises(SessionFailed, match="before it was ready"), BashShell(tmp_path, dict(os.environ)) as shell:
        shell.run("echo no port is free &")
