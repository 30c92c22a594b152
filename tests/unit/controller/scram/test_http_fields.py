"""Headers of a login (RFC 7804): what the RFC shows is read, and what is not in its form is refused."""

from __future__ import annotations

import pytest

from quorate.controller.scram.errors import ScramFailure
from quorate.controller.scram.http_fields import (
    FIELD_CHARS_MAX,
    HttpStep,
    authentication_info,
    challenge,
    http_step,
    is_challenge,
)

MECHANISM = "SCRAM-SHA-256"


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (f'{MECHANISM} realm="testrealm@example.com", data=biwsbj11c2Vy', HttpStep(MECHANISM, "", b"n,,n=user")),
        (f"{MECHANISM} data=biwsbj11c2Vy,SID=AAAABBBBCCCCDDDD", HttpStep(MECHANISM, "AAAABBBBCCCCDDDD", b"n,,n=user")),
        (f'{MECHANISM} sid="A.b-c~_9",\tdata="YQ=="', HttpStep(MECHANISM, "A.b-c~_9", b"a")),
        ("SCRAM-SHA-512 data=YQ==", HttpStep("SCRAM-SHA-512", "", b"a")),
    ],
)
def test_messages_are_read_as_the_rfc_writes_them(text: str, step: HttpStep) -> None:
    assert http_step(text) == step
    assert http_step(step.text) == step
    assert authentication_info(step.parameters) == step._replace(mechanism="")
    assert not is_challenge(step.text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        MECHANISM,
        "Bearer YQ==",
        "SCRAM-SHA-1 data=YQ==",
        f"{MECHANISM} sid=a",
        f"{MECHANISM} data=",
        f"{MECHANISM} data=YQ",
        f"{MECHANISM} data=Y!==",
        f"{MECHANISM} data=YQ== sid=a",
        f"{MECHANISM} data=YQ==, data=YQ==",
        f"{MECHANISM} data=YQ==, DATA=YQ==",
        f'{MECHANISM} data="YQ==',
        f'{MECHANISM} data=YQ==, sid="a b"',
        f"{MECHANISM} data=YQ==, sid=a/b",
        f'{MECHANISM} data=YQ==, realm="{"r" * FIELD_CHARS_MAX}"',
    ],
)
def test_header_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ScramFailure):
        http_step(text)


def test_offer_names_the_realm_and_holds_no_message() -> None:
    offered = challenge(MECHANISM, "here")
    assert offered == 'SCRAM-SHA-256 realm="here"'
    assert is_challenge(offered)
    with pytest.raises(ScramFailure, match="without data"):
        http_step(offered)
