"""``python -m tests.integration.guide.machines PAGE DIRECTORY``: runs a guide on four machines.

Each machine is a network namespace with an address of its own, on our switch, and a mount namespace in which /etc, /opt
and /var/lib are overlays: what is written there is that machine's alone, and gone with it. What only a whole machine
has is played: users (`runuser`, `chown`), `scp`, `systemctl`. Quorate's own commands are the real ones.

The last line of the output is a JSON list of what each command did. Exit code 77: no namespaces here, and why.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from quorate.scripts.networks.namespaces import NotAllowed, isolate

NOT_HERE = 77
READY_S = 120.0
_CLONE_NEWNS = 0x0002_0000
_END = "\x04end"
_OVERLAID = ("etc", "opt", "var/lib")
_SETUP = """
set -e
mount -t tmpfs tmpfs {home}
for place in {overlaid}; do
  mkdir -p {home}/up/$place {home}/work/$place
  mount -t overlay overlay -o lowerdir=/$place,upperdir={home}/up/$place,workdir={home}/work/$place /$place
done
mkdir -p -m 0700 /etc/quorate /var/lib/quorate
mkdir -p /etc/systemd/system /opt/quorate/bin
ln -s {programs}/quorate /opt/quorate/bin/quorate
set +e
"""
_PROGRAMS = {
    "quorate": 'exec {python} -P -m quorate.scripts.cli "$@"',
    "systemctl": 'cd {root} && exec {python} -m tests.integration.guide.service_manager "$@"',
    "runuser": 'while [ "$1" != -- ]; do shift; done; shift; exec "$@"',
    "chown": "exit 0",
    # root@ADDRESS:PATH is PATH in the mount namespace of the machine with this address.
    "scp": """
for argument; do
  case "$argument" in
    root@*:*)
      address="${{argument#root@}}"; path="${{address#*:}}"; address="${{address%%:*}}"
      argument="/proc/$(cat {directory}/$address)/root$path" ;;
  esac
  set -- "$@" "$argument"; shift
done
exec cp "$@"
""",
}


class Machine:
    """A shell that stays, as that of somebody who has logged in."""

    def __init__(self, name: str, place: Any, directory: Path) -> None:
        home = directory / name
        home.mkdir()
        quiet = {key: value for key, value in os.environ.items() if not key.startswith("QUORATE_")}
        path = f"{directory}/programs:{os.environ['PATH']}"
        self._shell = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "bash", "--norc", "--noprofile"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**quiet, "PATH": path, "HOME": str(home)},
            preexec_fn=place.enter,  # noqa: PLW1509  # there are no threads yet
            text=True,
        )
        setup = _SETUP.format(home=home, overlaid=" ".join(_OVERLAID), programs=directory / "programs")
        code, said = self.run(setup)
        if code:
            raise NotAllowed(f"no overlay in a mount namespace: {said.strip()}")
        children = Path(f"/proc/{self._shell.pid}/task/{self._shell.pid}/children").read_text().split()
        (directory / place.address).write_text(children[0])

    def run(self, command: str) -> tuple[int, str]:
        """Exit code and output of a command line."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{command}\nprintf '\\n{_END} %s\\n' $?\n")
        self._shell.stdin.flush()
        said: list[str] = []
        for line in self._shell.stdout:
            if line.startswith(_END):
                return int(line.split()[1]), "".join(said).rstrip("\n")
            said.append(line)
        return self._shell.wait(), "".join(said)

    def close(self) -> None:
        """With all that runs on it."""
        self._shell.kill()
        self._shell.wait()


def main() -> int:
    """Namespaces first: once anything that starts a thread is loaded, the kernel refuses."""
    page, directory = Path(sys.argv[1]), Path(sys.argv[2])
    try:
        isolate()
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNS):
            raise NotAllowed("no mount namespace")
        done = run_guide(page, directory)
    except NotAllowed as error:
        print(f"no namespaces here: {error}")
        return NOT_HERE
    print(json.dumps(done))
    return 0


def run_guide(page: Path, directory: Path) -> list[dict[str, Any]]:
    """Each command with its exit code and output; the last one is the first that failed, if one did."""
    from quorate.scripts.networks.network import VirtualNetwork
    from tests.integration.guide.page import EVERY, SAFE, steps

    _write_programs(directory)
    machines: dict[str, Machine] = {}
    done = []
    with VirtualNetwork([*EVERY, SAFE], 0) as network:
        try:
            for name, place in network.places.items():
                machines[name] = Machine(name, place, directory)
            for step in steps(page, "Three machines", ("Installation",)):
                code, said = _carried_out(machines[step.machine], step.command)
                done.append({**step._asdict(), "code": code, "said": said})
                print(f"{step.machine}# {step.command}\n{said}", flush=True)
                if code:
                    for name in EVERY:
                        print(name, machines[name].run("tail -n 20 /var/lib/journal/*.log")[1])
                    break
        finally:
            for machine in machines.values():
                machine.close()
    return done


def _carried_out(machine: Machine, command: str) -> tuple[int, str]:
    """`quorate status` is what its reader repeats until all is well."""
    end = time.monotonic() + READY_S
    while True:
        code, said = machine.run(command)
        if not code or command != "quorate status" or time.monotonic() > end:
            return code, said


def _write_programs(directory: Path) -> None:
    programs = directory / "programs"
    programs.mkdir(parents=True)
    for name, text in _PROGRAMS.items():
        words = text.format(python=sys.executable, root=Path(__file__).parents[3], directory=directory)
        (programs / name).write_text(f"#!/bin/bash\n{words}\n")
        (programs / name).chmod(0o755)


if __name__ == "__main__":
    sys.exit(main())
