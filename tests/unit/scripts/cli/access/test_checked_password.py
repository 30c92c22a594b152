"""`quorate users check`: a password against the credential in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from quorate.controller.scram.errors import ScramFailure
from quorate.controller.scram.keys import salted_password, scram_keys
from quorate.metadata_log.checkpoints.checkpoint_files import CheckpointId, checkpoint_name
from quorate.metadata_log.records.records import UserScramCredentialRecord
from quorate.scripts.cli.__main__ import make_app
from quorate.snapshots.checkpoints.checkpoint import checkpoint_batches
from tests.unit.controller.small_cluster import SmallCluster

MECHANISM = "SCRAM-SHA-512"


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A checkpoint in which ana's password is pässword."""
    cluster = SmallCluster(brokers=0)
    keys = scram_keys(MECHANISM, salted_password(MECHANISM, "pässword", b"salt", 4096))
    cluster.write(UserScramCredentialRecord("ana", 2, b"salt", *keys, 4096))
    covers = cluster.image.provenance
    path = tmp_path / checkpoint_name(CheckpointId(covers.end_offset, covers.epoch))
    path.write_bytes(b"".join(checkpoint_batches(cluster.image, 1_000)))
    return path


def check(path: Path, password: str, name: str = "ana", mechanism: str = MECHANISM) -> Result:
    words = ["users", "check", name, "--mechanism", mechanism, "--from", str(path)]
    return CliRunner().invoke(make_app(words), words, input=password.encode())


def test_password_that_logs_in_is_said_so(checkpoint: Path) -> None:
    done = check(checkpoint, "pässword\n")

    assert (done.exit_code, done.output) == (0, "ana logs in by SCRAM-SHA-512 with this password.\n")


@pytest.mark.parametrize(
    ("password", "name", "mechanism", "reason"),
    [
        ("password", "ana", MECHANISM, "not that of the user's password"),
        ("pässword", "bo", MECHANISM, "no credential of this mechanism"),
        ("pässword", "ana", "SCRAM-SHA-256", "no credential of this mechanism"),
        ("pässword", "zoë", MECHANISM, "ASCII"),
    ],
)
def test_password_that_does_not_log_in_is_refused(
    checkpoint: Path, password: str, name: str, mechanism: str, reason: str
) -> None:
    done = check(checkpoint, password, name, mechanism)

    assert isinstance(done.exception, ScramFailure)
    assert reason in str(done.exception)
    assert password not in done.output
