"""Tracebacks for the log."""

from quorate.metadata_log.records.records import UserScramCredentialRecord
from quorate.metadata_log.tracebacks import traceback_text


def fail(depth: int, words: str, password: str) -> None:
    if depth:
        fail(depth - 1, words, password)
    raise ValueError(words)


def raised(depth: int, words: str) -> ValueError:
    try:
        fail(depth, words, "hu" + "sh")
    except ValueError as error:
        return error
    raise AssertionError("it fails")


def test_traceback_says_where_and_why_and_no_variables_value() -> None:
    text = traceback_text(raised(3, "a bug"))
    assert text.endswith("ValueError: a bug")
    assert "raise ValueError(words)" in text
    assert "hush" not in text


def test_traceback_of_a_deep_or_talkative_error_is_its_end() -> None:
    assert traceback_text(raised(200, "deep")).count("in fail") <= 41
    text = traceback_text(raised(1, "x" * 100_000 + " the end"))
    assert len(text) < 21_000
    assert text.endswith("the end")


def test_credential_is_shown_without_its_keys() -> None:
    """As by an error that names it."""
    shown = repr(UserScramCredentialRecord("ann", 1, b"the salt", b"stored", b"server", 4096))
    assert shown == "UserScramCredentialRecord(name='ann', mechanism=1, iterations=4096)"
