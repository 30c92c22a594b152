"""Processes and what they started, as the system tells of them."""

from pathlib import Path

from quorate.pipeline.spark.java import HANDS_ON

#: Of every JVM of the tests: a test's data are small, and what is compiled well is run too seldom to gain by it. Half
#: of a short session is loading Spark's classes: they are taken as its makers shipped them, and not verified again.
QUICK_JAVA = (*HANDS_ON, "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")


def children(pid: int) -> set[int]:
    """Return the processes that this one started, from any of its threads."""
    files = Path(f"/proc/{pid}/task").glob("*/children")
    return {child for file in files for child in map(int, file.read_text().split())}


def descendants(pid: int) -> set[int]:
    """Return the processes that this one started, and those that they did."""
    return children(pid).union(*map(descendants, children(pid)))


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False
