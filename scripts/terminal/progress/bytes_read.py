"""The progress of whatever goes through files, in the bytes that it has read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from quorate.metadata_log.directory.reader import LogFile, find_files, noting_reads
from quorate.metadata_log.errors import StorageError
from quorate.scripts.terminal.progress.amounts import arrived, megabytes
from quorate.scripts.terminal.progress.line import telling


@contextmanager
def bytes_progress(title: str, total: int) -> Iterator[Callable[[int], None]]:
    """While the block lasts, tell how much of ``total`` bytes is done; call what is given with how many more are."""
    done = [0]

    def advance(more: int) -> None:
        done[0] += more

    with telling(lambda seconds: f"{title}: {megabytes(done[0], total, seconds)}"):
        yield advance


@contextmanager
def arriving_bytes(title: str) -> Iterator[Callable[[int], None]]:
    """While the block lasts, tell how many bytes have come, how fast; call what is given with how many more have."""
    done = [0]

    def advance(more: int) -> None:
        done[0] += more

    with telling(lambda seconds: f"{title}: {arrived(done[0], seconds)}"):
        yield advance


@contextmanager
def reading_files(*paths: Path) -> Iterator[None]:
    """While the block lasts, tell how far logs and checkpoints are read that lie in these places.

    Not all that lies there has to be read: what a whole checkpoint covers is passed over.
    """
    sizes = dict(_sizes(paths))
    total = sum(sizes.values())
    read: dict[Path, int] = {}
    names = ", ".join(map(str, paths))

    def note(file: LogFile, position: int) -> None:
        # Some are gone through twice, to find a moment: they are no more for that.
        read[file.path] = max(position, read.get(file.path, 0))

    def words(seconds: float) -> str:
        return f"reading {names}: {megabytes(sum(list(read.values())), total, seconds, 'at most')}"

    with ExitStack() as stack:
        if sizes:
            stack.enter_context(noting_reads(note))
            stack.enter_context(telling(words))
        yield


def _sizes(paths: Iterable[Path]) -> Iterator[tuple[Path, int]]:
    """None where nothing can be read: whoever reads says so."""
    for path in paths:
        try:
            yield from ((file.path, file.path.stat().st_size) for file in find_files(path))
        except (StorageError, OSError):
            continue
