"""The certificate of a process of brokers: its log warns before it ends, and while changed files cannot be used."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from quorate.broker.http.certificate import OwnCertificate
from quorate.controller.api.tls_files import TlsFiles
from tests.integration.made_certificates import authority, issued, written

DAY_S = 86_400.0
ENDS = datetime(2099, 1, 31, tzinfo=UTC)


class Moment:
    """Seconds since 1970, as a test sets them; files are looked at by it, too."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def own(directory: Path, clock: Moment) -> OwnCertificate:
    files = TlsFiles(written(directory, issued(authority(), "127.0.0.1", ends=ENDS), authority()), is_server=True)
    return OwnCertificate(files, clock)


@pytest.mark.parametrize(
    ("days_left", "says"),
    [(15, []), (13, ["it expires at 2099-01-31T00:00:00Z, in 13.0 days"]), (-1, ["it has expired at 2099-01-31"])],
)
def test_end_of_a_certificate_is_warned_of_two_weeks_before(tmp_path: Path, days_left: int, says: list[str]) -> None:
    clock = Moment(ENDS.timestamp() - days_left * DAY_S)
    certificate = own(tmp_path, clock)
    with capture_logs() as lines:
        certificate.look()
    assert certificate.left_s == days_left * DAY_S
    assert [line["why"][: len(said)] for line, said in zip(lines, says, strict=True)] == says


def test_warning_comes_once_a_day(tmp_path: Path) -> None:
    clock = Moment(ENDS.timestamp() - 10 * DAY_S)
    certificate = own(tmp_path, clock)
    with capture_logs() as lines:
        for hours in (0, 1, 23, 25):
            clock.now = ENDS.timestamp() - 10 * DAY_S + hours * 3_600
            certificate.look()
    assert [line["event"] for line in lines] == ["certificate.ends"] * 2


def test_changed_files_that_cannot_be_used_are_told_of_until_they_can(tmp_path: Path) -> None:
    now = 0.0
    paths = written(tmp_path, issued(authority(), "127.0.0.1"), authority())
    files = TlsFiles(paths, is_server=True, clock=lambda: now)
    certificate = OwnCertificate(files, datetime.now(UTC).timestamp)
    said = []
    for damage in (b"no PEM", (tmp_path / "cert.pem").read_bytes(), b"no PEM"):
        (tmp_path / "cert.pem").write_bytes(damage)
        now += 2
        with capture_logs() as lines:
            certificate.look()
        said.append([line["event"] for line in lines])
    assert said == [["certificate.unused"], [], ["certificate.unused"]]
