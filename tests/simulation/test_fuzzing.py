"""A fixed set of mutated inputs for every reader of bytes, and whether a wrong reader would be noticed."""

from __future__ import annotations

import signal
from types import SimpleNamespace
from typing import Final

import pytest

from quorate.broker.replicas import messages
from quorate.broker.replicas.follower import FollowerCore
from quorate.controller.principals import distinguished_names
from quorate.controller.scram import server
from quorate.metadata_log.directory.quorum_state import QuorumState, QuorumStateStore
from quorate.scripts.fuzzing import running, targets
from quorate.scripts.fuzzing.corpus import Corpus, make_corpus
from quorate.scripts.fuzzing.running import run_inputs

#: Inputs of each target; more by hand: scripts/fuzz
INPUTS: Final = {
    "log": 150,
    "checkpoint": 300,
    "election-state": 800,
    "frames": 1_000,
    "http": 250,
    "certificate-names": 800,
    "login": 800,
    "follow-messages": 60,
    "follow-answers": 60,
}


@pytest.fixture(scope="module", name="corpus")
def made_corpus() -> Corpus:
    """Made by unpatched readers: a fixture stands before the first line of the test that asks for it."""
    return make_corpus()


@pytest.mark.parametrize("target", INPUTS)
def test_mutated_inputs_fixed_set_is_refused_by_type_or_read_right(target: str, corpus: Corpus) -> None:
    tally = run_inputs(target, corpus, 0, range(INPUTS[target]))

    assert not tally.findings, "\n".join(finding.failure for finding in tally.findings)
    assert tally.counts["refused"] > INPUTS[target] // 2
    assert tally.counts["taken"] > 0


def test_follower_that_does_not_begin_anew_is_found(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    monkeypatch.setattr(FollowerCore, "failed", lambda *_: None)

    assert run_inputs("follow-answers", corpus, 0, range(5)).findings


def test_leader_that_believes_numbers_unread_is_found(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    monkeypatch.setattr(messages, "_number", lambda value, *_: value)

    assert run_inputs("follow-messages", corpus, 0, range(60)).findings


def test_login_whose_proof_nobody_compares_is_found(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    monkeypatch.setattr(server, "hmac", SimpleNamespace(compare_digest=lambda *_: True))

    assert run_inputs("login", corpus, 0, range(100)).findings


def test_certificate_read_beyond_its_end_is_found(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    monkeypatch.setattr(distinguished_names, "object_identifier", lambda content: content[5000])

    assert run_inputs("certificate-names", corpus, 0, range(100)).findings


def test_inputs_same_seed_and_number_are_the_same_bytes(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    seen: list[bytes] = []

    def take(_: targets.FrameTarget, data: bytes) -> bool:
        seen.append(data)
        return True

    monkeypatch.setattr(targets.FrameTarget, "run", take)

    run_inputs("frames", corpus, 3, range(20))
    run_inputs("frames", corpus, 3, range(10, 20))

    assert seen[10:20] == seen[20:]


def test_reader_with_an_untyped_error_is_found(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    def load(_: object) -> QuorumState:
        raise KeyError("leaderEpoch")

    monkeypatch.setattr(QuorumStateStore, "load", load)

    tally = run_inputs("election-state", corpus, 0, range(3))

    assert [finding.number for finding in tally.findings] == [0, 1, 2]
    assert "KeyError: 'leaderEpoch'" in tally.findings[0].failure


def test_reader_that_hangs_is_found_and_ended(monkeypatch: pytest.MonkeyPatch, corpus: Corpus) -> None:
    monkeypatch.setattr(running, "INPUT_SECONDS_MAX", 0.05)
    monkeypatch.setattr(QuorumStateStore, "load", lambda _: signal.pause())

    tally = run_inputs("election-state", corpus, 0, range(1))

    assert "Hang" in tally.findings[0].failure
