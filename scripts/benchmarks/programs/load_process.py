"""A fresh process that loads one checkpoint and says how long it took, and how much memory the image has."""

from __future__ import annotations

import gc
import json
import sys
import time
from pathlib import Path

from quorate.scripts.benchmarks.process_tree import resident_bytes
from quorate.snapshots.checkpoints.loading import load_image


def main(path: Path) -> None:
    """Load, and print one line of JSON."""
    gc.collect()
    before = resident_bytes()
    start, start_cpu = time.perf_counter(), time.process_time()
    image = load_image(path)
    elapsed_s, cpu_s = time.perf_counter() - start, time.process_time() - start_cpu
    gc.collect()
    found = {
        "elapsed_s": elapsed_s,
        "cpu_s": cpu_s,
        "partitions": len(image.partitions),
        "resident_bytes": resident_bytes() - before,
        "column_bytes": image.partitions.nbytes,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
