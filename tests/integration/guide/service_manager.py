"""`systemctl` on a machine that is a namespace: runs what units say, as systemd would.

A unit's command, environment, state directory and readiness are its own words. Of what hardens it a process has what it
can give itself: no memory that is written and then executed, no new privileges. Processes are children of the machine's
shell, and their output is in /var/lib/journal.
"""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from tests.waiting import eventually_sync

UNITS = Path("/etc/systemd/system")
JOURNAL = Path("/var/lib/journal")
STATE = Path("/var/lib")
START_S = 180.0
#: <linux/prctl.h>; the first is known to kernels from 6.3 on, and refused by others.
_PR_SET_MDWE = 65
_PR_SET_NO_NEW_PRIVS = 38
_libc = ctypes.CDLL(None)


def unit_of(name: str) -> tuple[str, str]:
    """The text of a unit, for its instance, and its name with what it is."""
    name = name if re.search(r"\.(service|timer)$", name) else f"{name}.service"
    stem, at, rest = name.partition("@")
    instance, _, kind = rest.rpartition(".")
    file = UNITS / (f"{stem}@.{kind}" if at else name)
    return file.read_text().replace("%i", instance), name


def values(unit: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit, flags=re.MULTILINE)


def harden() -> None:
    """Of the process that becomes the service."""
    _libc.prctl(_PR_SET_MDWE, 1, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def start(name: str) -> int:
    unit, name = unit_of(name)
    if name.endswith(".timer"):
        assert values(unit, "OnCalendar"), "a timer without a time"
        unit_of(name.removesuffix(".timer") + ".service")
        return 0
    for path in values(unit, "AssertPathExists"):
        assert Path(path).exists(), f"{name}: there is no {path}"
    environment = {"PATH": os.environ["PATH"], "HOME": "/var/lib/quorate"}
    for file in values(unit, "EnvironmentFile"):
        lines = (line for line in Path(file).read_text().splitlines() if line and not line.startswith("#"))
        environment |= dict(line.split("=", 1) for line in lines)
    for directory in values(unit, "StateDirectory"):
        (STATE / directory).mkdir(mode=0o700, exist_ok=True)
    (command,) = values(unit, "ExecStart")
    JOURNAL.mkdir(exist_ok=True)
    with (JOURNAL / f"{name}.log").open("ab") as log:
        if values(unit, "Type") == ["oneshot"]:
            return subprocess.run(
                shlex.split(command),
                env=environment,
                stdout=log,
                stderr=log,
                check=False,
                preexec_fn=harden,  # this process has one thread
            ).returncode
        assert values(unit, "Type") == ["notify"]
        address = f"\0quorate-{os.getpid()}"
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
            listening.bind(address)
            environment["NOTIFY_SOCKET"] = f"@{address[1:]}"
            process = subprocess.Popen(
                shlex.split(command),
                env=environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=harden,  # noqa: PLW1509  # as above
            )
            (JOURNAL / f"{name}.pid").write_text(str(process.pid))
            return wait_until_ready(listening, process)


def wait_until_ready(listening: socket.socket, process: subprocess.Popen[bytes]) -> int:
    listening.settimeout(0.1)
    end = time.monotonic() + START_S
    while time.monotonic() < end and process.poll() is None:
        try:
            if b"READY=1" in listening.recv(4096).split(b"\n"):
                return 0
        except TimeoutError:
            continue
    return 1


def stop(name: str) -> int:
    """Until the process has ended, as long as the unit gives it."""
    unit, name = unit_of(name)
    process = int((JOURNAL / f"{name}.pid").read_text())
    os.kill(process, signal.SIGTERM)
    patience_s = float(values(unit, "TimeoutStopSec")[0].removesuffix("s"))
    eventually_sync(lambda: not is_running(process), f"{name} has stopped", patience_s)
    return 0


def is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> int:
    """The verbs that the guide needs."""
    match sys.argv[1:]:
        case ["daemon-reload"]:
            return 0
        case ["enable", "--now", name] | ["start", name]:
            return start(name)
        case ["stop", name]:
            return stop(name)
    raise AssertionError(f"systemctl {sys.argv[1:]} is not played here")


if __name__ == "__main__":
    sys.exit(main())
