"""`quorate quotas`, `quorate users`, `quorate acls`: what is wrong on the command line, before anybody is asked."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner, Result

from quorate.scripts.cli.__main__ import make_app
from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.programs.failures import Failed

SHA_256 = ("--mechanism", "SCRAM-SHA-256")
RATE = "producer_byte_rate"
SET = ("quotas", "set", "user/a", "--quota")
ADD = ("acls", "add", "topic/t", "--operation", "read", "--principal", "User:a")


def run(*arguments: str, given: bytes = b"") -> Result:
    """A command that reaches nobody."""
    every = [*arguments, "--controllers", "127.0.0.1:1"]
    return CliRunner().invoke(make_app(every), every, input=given)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("quotas", "set", "group/g", "--quota", f"{RATE}=1"), "names nothing that has quotas"),
        (("quotas", "set", "user", "--quota", f"{RATE}=1"), "or user/ for the default"),
        (("quotas", "set", "user/a"), "Missing option '--quota'"),
        ((*SET, RATE), "is not NAME=VALUE"),
        ((*SET, "=1"), "is not NAME=VALUE"),
        ((*SET, f"{RATE}=many"), "is not NAME=VALUE"),
        ((*SET, f"{RATE}=inf"), "finite number"),
        ((*SET, f"{RATE}=nan"), "finite number"),
        (("quotas", "set", "user/" + "x" * 9_000, "--quota", f"{RATE}=1"), "at most 8191"),
        (("quotas", "list", "user/a", "user"), "user is named twice"),
        (("quotas", "list", "a"), "names nothing that has quotas"),
        (("users", "set", "ana", "--mechanism", "PLAIN"), "is not one of"),
        (("users", "set", "ana"), "Missing option '--mechanism'"),
        (("users", "set", "ana", *SHA_256), "it is empty"),
        (("users", "set", "ana", *SHA_256, "--iterations", "1"), "4096"),
        (("users", "set", "ana", *SHA_256, "--password-file", "/none"), "cannot be read"),
        (("users", "set", "ana", *SHA_256, "--password", "hush"), "No such option"),
        (("users", "remove", "x" * 9_000, *SHA_256, "--yes"), "at most 8191"),
        (("users", "remove", "ana", *SHA_256), "here: to remove the SCRAM-SHA-256 credential of ana, say --yes"),
        (("acls", "add", "lake/x", *ADD[3:]), "names no resource"),
        (("acls", "add", "topic", *ADD[3:]), "which? Say topic/NAME"),
        ((*ADD, "--operation", "any"), "is none of"),
        (ADD[:-2], "Missing option '--principal'"),
        ((*ADD, "--host", "x" * 9_000), "at most 8191"),
        (("acls", "remove"), "say which"),
        (("acls", "list", "--pattern", "glob"), "is not one of"),
        (("acls", "list", "--operation", "any"), "is none of"),
    ],
)
def test_wrong_words_end_with_a_sentence_and_the_usage_code(arguments: tuple[str, ...], says: str) -> None:
    ended = run(*arguments)
    own = ended.exception if isinstance(ended.exception, Failed) else None
    said = " ".join(ended.output.replace("│", " ").split()) if own is None else str(own)
    assert (ended.exit_code if own is None else own.code) == exit_codes.USAGE, said
    assert says in said


@pytest.mark.parametrize("given", [b"hush\xff\n", b"hush" * 2_000])
def test_password_that_cannot_be_is_not_repeated(given: bytes) -> None:
    ended = run("users", "set", "ana", *SHA_256, given=given)
    assert ended.exit_code == exit_codes.USAGE
    assert "hush" not in ended.output


@pytest.mark.parametrize(
    "arguments",
    [("quotas", "list"), ("quotas", "set"), ("quotas", "remove"), ("users", "list"), ("users", "set"),
     ("users", "remove"), ("acls", "list"), ("acls", "add"), ("acls", "remove")],
    ids=" ".join,
)  # fmt: skip
def test_help_teaches_by_an_example(arguments: tuple[str, ...]) -> None:
    every = [*arguments, "--help"]
    assert f"Example: quorate {' '.join(arguments)}" in " ".join(
        CliRunner().invoke(make_app(every), every).output.split()
    )
