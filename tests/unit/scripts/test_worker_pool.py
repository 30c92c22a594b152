"""Worker processes end with the one that started them, also where that is killed."""

import subprocess
import sys

from tests.waiting import eventually_sync

PROGRAM = """
import os, sys, time
from quorate.scripts.worker_pool import worker_pool

def say_and_stay():
    print(os.getpid(), flush=True)
    time.sleep(60)

with worker_pool(1) as pool:
    pool.submit(say_and_stay).result()
"""


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_workers_end_with_a_parent_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        assert is_running(worker)
        parent.kill()
        parent.wait()

        eventually_sync(lambda: not is_running(worker), "the worker has ended")
