"""A look at certificate files: each thing that is wrong is said, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from quorate.scripts.certificates.authority import CertificateAuthority, Validity
from quorate.scripts.certificates.certificate_directory import CertificateDirectory
from quorate.scripts.certificates.findings import look_at
from quorate.scripts.certificates.holders import CertificateError, client_holder, controller_holder

NOW = datetime.now(UTC)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = CertificateDirectory.make(tmp_path, "c", Validity.of(3650))
    made.issue(controller_holder("c", 1, ["127.0.0.1"]), Validity.of(100))
    return tmp_path


def test_names_and_days_left_are_told(directory: Path) -> None:
    ca, one = look_at(directory, NOW, 14)
    assert (ca.is_authority, ca.uris, ca.has_key, ca.problems) == (True, ("quorate://c/ca",), True, ())
    assert (one.file, one.uris, one.hosts) == (
        str(directory / "controller-1.pem"),
        ("quorate://c/controller/1",),
        ("127.0.0.1",),
    )
    assert (one.is_authority, one.has_key, one.days_left, one.issuer, one.problems) == (
        False,
        True,
        100.0,
        ca.subject,
        (),
    )


@pytest.mark.parametrize(
    ("days", "says"),
    [(85.9, []), (86.1, ["it expires in 13.9 days"]), (101, ["it has expired"]), (-1, ["it is not valid before"])],
)
def test_time_that_is_over_or_nearly_is_a_problem(directory: Path, days: float, says: list[str]) -> None:
    (one,) = look_at(directory / "controller-1.pem", NOW + timedelta(days=days), 14)
    assert [problem[: len(said)] for problem, said in zip(one.problems, says, strict=True)] == says


def _stranger(directory: Path) -> None:
    issued = CertificateAuthority.make("c", Validity.of(9)).issue(client_holder("x"), Validity.of(90))
    (directory / "controller-1.pem").write_bytes(issued.certificate)
    (directory / "controller-1.key").write_bytes(issued.key)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda at: (at / "controller-1.key").chmod(0o644), "has mode 0644"),
        (lambda at: (at / "ca.key").rename(at / "controller-1.key"), "is the key of another certificate"),
        (_stranger, "it is of none of the CAs in ca.pem beside it"),
    ],
)
def test_what_keeps_a_certificate_from_being_used_is_a_problem(
    directory: Path, damage: Callable[[Path], object], says: str
) -> None:
    damage(directory)
    (problem,) = look_at(directory / "controller-1.pem", NOW, 5)[0].problems
    assert says in problem


def test_certificate_without_its_key_beside_it_is_no_problem(directory: Path) -> None:
    (directory / "controller-1.key").unlink()
    (one,) = look_at(directory / "controller-1.pem", NOW, 14)
    assert (one.has_key, one.problems) == (False, ())


def test_directory_without_certificates_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"no file there is named \*.pem"):
        look_at(tmp_path, NOW, 14)
