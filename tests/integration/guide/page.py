"""The commands of a guide: the lines of a page's code blocks that begin with a machine's name and `#`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

#: The machines that a cluster runs on, and the one where its operator sits.
EVERY = ("one", "two", "three")
SAFE = "safe"
_HEADING = re.compile(r"^(#+) (.*)$")
_COMMAND = re.compile(r"^(every|one|two|three|safe)# (.*)$")


class Step(NamedTuple):
    """A command, and the machine on which it is given."""

    section: str
    machine: str
    command: str


def steps(page: Path, chapter: str, left_out: tuple[str, ...]) -> list[Step]:
    """The commands below the heading ``chapter``, without those of the sections that are left out, in order."""
    found = []
    section, is_in, is_code = "", False, False
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and (heading := _HEADING.match(line)):
            is_in = heading[2] == chapter or (is_in and len(heading[1]) > 2)
            section = heading[2]
        elif is_code and is_in and section not in left_out:
            command = _COMMAND.match(line)
            assert command is not None, f"{section}: {line!r} is no command of a machine"
            machines = EVERY if command[1] == "every" else (command[1],)
            found += [Step(section, machine, command[2]) for machine in machines]
    return found
