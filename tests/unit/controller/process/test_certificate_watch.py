"""A certificate that is about to end makes the node degraded in time, and one that has ended says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quorate.controller.api.kept_files import secret_file
from quorate.controller.api.tls_files import TlsFiles
from quorate.controller.engine.counters import Counters
from quorate.controller.engine.environment import ProcessFaults
from quorate.controller.process.certificate_watch import CertificateWatch
from tests.integration.made_certificates import authority, issued, written

DAY_S = 86_400.0


@pytest.mark.parametrize(
    ("days_left", "says"),
    [
        (15, []),
        (13, ["certificate: it expires at 2099-01-31T00:00:00Z, in 13.0 days"]),
        (-1, ["certificate: it has expired at 2099-01-31T00:00:00Z, and nobody may trust this node"]),
    ],
)
def test_end_is_told_two_weeks_before(tmp_path: Path, days_left: int, says: list[str]) -> None:
    ends, ours = datetime(2099, 1, 31, tzinfo=UTC), authority()
    files = TlsFiles(written(tmp_path, issued(ours, "127.0.0.1", ends=ends), ours), is_server=True)
    counters = Counters()
    faults = ProcessFaults(counters)
    CertificateWatch(files, faults, counters).look((ends - timedelta(days=days_left)).timestamp())
    assert [sentence.partition(": renew")[0] for sentence in faults.sentences] == says
    assert counters.certificate_expiry_seconds == days_left * DAY_S


def test_changed_secret_that_cannot_be_used_is_told_where_no_tls_is_spoken_too(
    tmp_path: Path,
) -> None:
    now = 0.0
    path = tmp_path / "secret"
    path.write_text("s" * 32)
    path.chmod(0o600)
    faults = ProcessFaults(Counters())
    kept = secret_file(path, clock=lambda: now)
    watch = CertificateWatch(None, faults, Counters(), {"shared_secret_file": kept, "other": None})
    for content, is_told in (("short", True), ("n" * 32, False)):
        path.write_text(content)
        now += 2
        watch.look(0.0)
        assert [text.partition(":")[0] for text in faults.sentences] == ["changed shared_secret_file"] * is_told


def test_changed_files_that_cannot_be_used_are_told_until_they_can(tmp_path: Path) -> None:
    ours = authority()
    now = 0.0
    paths = written(tmp_path, issued(ours, "127.0.0.1"), ours)
    files = TlsFiles(paths, is_server=True, clock=lambda: now)
    faults = ProcessFaults(Counters())
    watch = CertificateWatch(files, faults, Counters())
    for damage, is_told in ((b"no PEM", True), ((tmp_path / "cert.pem").read_bytes(), False)):
        (tmp_path / "cert.pem").write_bytes(damage)
        now += 2
        watch.look(datetime.now(UTC).timestamp())
        assert [text.partition(":")[0] for text in faults.sentences] == ["changed certificate files"] * is_told
