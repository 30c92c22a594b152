"""`quorate log` as processes: memory on large logs, pipes that close, exit codes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from quorate.metadata_log.batches.batch import data_batch, place_batch
from quorate.metadata_log.records.records import ConfigRecord
from quorate.scripts.terminal import exit_codes

TIME = 1_700_000_000_000
ROOT = Path(__file__).resolve().parents[3]
#: Bytes of one record, and records of one batch: batches of about 1 MB.
RECORD_BYTES = 30_000
BATCH_RECORDS = 35


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "quorate.scripts.cli", *map(str, arguments)]


def large_log(directory: Path, size: int) -> Path:
    """A segment of about ``size`` bytes, of few but long records: it is about bytes, not about their number."""
    path = directory / f"{0:020d}.log"
    batch = data_batch([(ConfigRecord(2, "topic", "name", "x" * RECORD_BYTES), 0)] * BATCH_RECORDS, TIME)
    with path.open("wb") as file:
        for number in range(size // len(batch)):
            file.write(place_batch(batch, number * BATCH_RECORDS, 1))
    return path


def peak_bytes(*arguments: str | Path) -> int:
    """The most memory that a command ever held, while somebody took its output."""
    with subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        while process.stdout.read(1 << 20):
            pass
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == exit_codes.DONE
    return usage.ru_maxrss * 1024


def test_log_dump_of_large_log_takes_no_more_memory_than_of_small_one(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    large.mkdir()
    small_log, large_log_ = large_log(small, 4 << 20), large_log(large, 60 << 20)
    assert large_log_.stat().st_size > 50 << 20

    for arguments in (("dump", "--json"), ("dump",), ("verify",)):
        grown = peak_bytes("log", *arguments, large_log_) - peak_bytes("log", *arguments, small_log)
        assert grown < 8 << 20, f"log {arguments}: {grown} bytes more for a log that is 56 MB larger"


def test_log_dump_ends_in_silence_when_its_reader_has_had_enough(tmp_path: Path) -> None:
    path = large_log(tmp_path, 4 << 20)
    with subprocess.Popen(
        command("log", "dump", "--json", path), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b'{"file":')
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (exit_codes.DONE, b"")


def test_log_commands_tell_by_their_exit_code(kafka_data: Path, tmp_path: Path) -> None:
    log = kafka_data / "dynamic-small/m1/log"
    fine = subprocess.run(command("log", "verify", log), capture_output=True, cwd=ROOT, check=False, text=True)
    missing = subprocess.run(
        command("log", "dump", tmp_path / "none"), capture_output=True, cwd=ROOT, check=False, text=True
    )
    usage = subprocess.run(command("log", "dump"), capture_output=True, cwd=ROOT, check=False, text=True)

    # No word of progress where it is over soon.
    assert (fine.returncode, fine.stderr) == (exit_codes.DONE, "")
    assert (missing.returncode, missing.stdout) == (exit_codes.REFUSED, "")
    assert missing.stderr == f"quorate: {tmp_path / 'none'}: no such file or directory\n"
    assert usage.returncode == exit_codes.USAGE
