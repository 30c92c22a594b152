"""``python -m quorate.scripts.networks``."""

from __future__ import annotations

import sys

from quorate.scripts.networks.namespaces import NotAllowed, isolate


def main() -> None:
    """Go into namespaces first: once anything that starts a thread is loaded, the kernel refuses."""
    obstacle = None
    try:
        isolate()
    except NotAllowed as error:
        obstacle = str(error)
    from quorate.scripts.networks.command import app
    from quorate.scripts.terminal.command_line import run

    run(app, sys.argv[1:], "scripts/netsim", obj=obstacle)


if __name__ == "__main__":
    main()
