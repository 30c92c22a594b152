"""A controller process on a machine with faults; nothing else of it is replaced.

Run as ``python -m quorate.scripts.cli.clusters.faulty_controller FAULTS --config SETTINGS``. What is in FAULTS:
``scripts.drills.machine_faults``.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from quorate.scripts.cli.__main__ import main as quorate
from quorate.scripts.drills.machine_faults import MachineFaults, install, watch


def main() -> None:
    """The controller command, on a machine with faults."""
    path, arguments = Path(sys.argv[1]), sys.argv[2:]
    faults = MachineFaults()
    install(faults)
    threading.Thread(target=watch, args=(faults, path), daemon=True).start()
    sys.argv = ["quorate", "controller", *arguments]
    quorate()


if __name__ == "__main__":
    main()
