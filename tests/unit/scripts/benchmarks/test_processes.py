"""The processor time of a process, as benchmarks of less than a second need it."""

import os
import time

from quorate.scripts.benchmarks.processes import processor_s


def test_processor_time_of_a_process_is_that_of_its_own_clock() -> None:
    for _ in range(3):
        before = time.process_time()
        between = processor_s(os.getpid())
        after = time.process_time()

        assert before < between < after
