"""The network as whoever makes it fail sees it: machines by name, and orders to the switch between them."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final, Self

from quorate.scripts.networks.links import DOWN, WIRE, Rule
from quorate.scripts.networks.namespaces import MachineNamespace, make_place

#: An answer of the switch takes as long as its turn, milliseconds.
_ANSWER_S: Final = 10.0
_LINE_BYTES_MAX: Final = 65_536
_SUBNET: Final = "10.77.0"


class SwitchGone(RuntimeError):
    """The switch has ended: without it nothing that is measured means anything."""


@dataclass(frozen=True, slots=True)
class SwitchFigures:
    """The switch's work so far, and whether it kept up."""

    forwarded: int
    #: By rules and middle-boxes.
    lost: int
    #: By nobody's will, in the switch and before it: what is not zero spoils a run.
    overload: int
    late_ms_max: float


class VirtualNetwork:
    """Machines on one switch. All orders are carried out when the call returns, with the moment they were."""

    def __init__(self, names: Sequence[str], seed: int) -> None:
        """Every machine with an address of its own, all links wires. Close it at the end."""
        self._stack = ExitStack()
        self.places: dict[str, MachineNamespace] = {}
        for number, name in enumerate(names, start=1):
            place = make_place(f"{_SUBNET}.{number}", number)
            self._stack.callback(place.close)
            self.places[name] = place
        self._numbers = {name: number for number, name in enumerate(names)}
        self._control, theirs = socket.socketpair()
        self._stack.callback(self._control.close)
        self._control.settimeout(_ANSWER_S)
        with theirs:
            self._switch = self._start_switch(theirs.fileno(), seed)

    def _start_switch(self, control: int, seed: int) -> subprocess.Popen[bytes]:
        taps = [place.tap for place in self.places.values()]
        return subprocess.Popen(
            [sys.executable, "-P", "-m", "quorate.scripts.networks.switch", *map(str, (control, seed, *taps))],
            pass_fds=[control, *taps],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the switch and let go of the machines' namespaces."""
        if self._switch.poll() is None:
            self._switch.send_signal(signal.SIGKILL)
        self._switch.wait()
        self._stack.close()

    def address(self, name: str) -> str:
        """A machine's IPv4 address."""
        return self.places[name].address

    # --- orders --------------------------------------------------------------------------------------

    def set(self, rules: Mapping[tuple[str, str], Rule]) -> float:
        """Put links (from, to) under rules, all at the same moment."""
        changes = [
            (self._numbers[source], self._numbers[target], rule.as_json()) for (source, target), rule in rules.items()
        ]
        return self._at(self._order(rules=changes))

    def all(self, rule: Rule) -> float:
        """Every link there is."""
        return self.set({(a, b): rule for a in self.places for b in self.places if a != b})

    def heal(self) -> float:
        """All links are wires again."""
        return self.all(WIRE)

    def cut(self, machine: str, others: Iterable[str] | None = None) -> float:
        """Nothing passes between a machine and others (all, unless they are named)."""
        names = [name for name in (self.places if others is None else others) if name != machine]
        return self.set({pair: DOWN for name in names for pair in ((machine, name), (name, machine))})

    def guard(self, pairs: Iterable[tuple[str, str]], idle_s: float) -> None:
        """Put a middle-box between the machines of each pair; connections that stand now are unknown to it."""
        self._order(boxes=[(self._numbers[a], self._numbers[b], idle_s) for a, b in pairs])

    def forget(self, one: str, other: str) -> tuple[float, int]:
        """The middle-box between two machines loses its table: when, and how many connections it knew."""
        answer = self._order(forget=[(self._numbers[one], self._numbers[other])])
        return self._at(answer), int(answer["forgotten"])

    def figures(self) -> SwitchFigures:
        """The switch's work so far."""
        answer = self._order()
        return SwitchFigures(
            forwarded=int(answer["forwarded"]),
            lost=int(answer["lost"]),
            overload=int(answer["overload"]) + sum(place.dropped() for place in self.places.values()),
            late_ms_max=float(answer["late_ms_max"]),
        )

    @staticmethod
    def _at(answer: Mapping[str, Any]) -> float:
        return float(answer["at"])

    def _order(self, **order: object) -> dict[str, Any]:
        line = b""
        try:
            self._control.sendall(json.dumps(order).encode() + b"\n")
            while not line.endswith(b"\n"):
                piece = self._control.recv(_LINE_BYTES_MAX)
                if not piece:
                    raise SwitchGone(f"the switch ended with exit code {self._switch.wait()}")
                line += piece
        except OSError as error:
            raise SwitchGone(f"the switch does not answer: {error}") from error
        answer: dict[str, Any] = json.loads(line)
        return answer
