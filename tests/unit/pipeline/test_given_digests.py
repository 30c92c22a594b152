"""Files of digests that others computed: what is read, and what is refused."""

import json
from pathlib import Path

import pytest

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.given_digests import read_digests

A, B = "a" * 64, "b" * 64


def line(offset: object, digest: object) -> str:
    return json.dumps({"offset": offset, "digest": digest, "partitions": 3})


def test_lines_are_read_and_what_else_they_say_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "digests"
    file.write_text(f"{line(7, A)}\n\n{line(9, B)}\n{line(7, A)}\n")

    assert read_digests(file) == {7: A, 9: B}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "0 digests; it must have 1 to 1000"),
        ("offset 7", "line 1: no JSON; a line is "),
        ("[" * 100_000, "line 1: no JSON"),
        ("[7]", "line 1: offset None is no whole number"),
        (line(0, A), "line 1: offset 0 is no whole number from 1"),
        (line(True, A), "line 1: offset True is no whole number"),
        (line(7.0, A), "line 1: offset 7.0 is no whole number"),
        (line(1 << 43, A), f"offset {1 << 43} is no whole number from 1 to"),
        (line(7, "A" * 64), "is not 64 hexadecimal digits in lower case"),
        (line(7, None), "digest None is not 64 hexadecimal digits"),
        (f"{line(7, A)}\n{line(7, B)}", "line 2: another digest for offset 7 than in a line before"),
        ("\n".join(line(one, A) for one in range(1, 1002)), "1001 digests; it must have 1 to 1000"),
        (" " * (1024 * 1024 + 1), "1048577 bytes of digests; at most 1048576"),
    ],
)
def test_bad_file_is_refused_in_one_sentence(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "digests"
    file.write_text(text)

    with pytest.raises(BadSetting, match=r"^[^\n]*$") as caught:
        read_digests(file)

    assert says in str(caught.value)


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match="nowhere: the digests cannot be read: No such file or directory"):
        read_digests(tmp_path / "nowhere")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(BadSetting, match="the digests cannot be read: it is no text"):
        read_digests(tmp_path / "bytes")
