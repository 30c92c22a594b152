"""The findings of an exploration: a file each, so that nothing is lost with the terminal it was printed on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Finding:
    """A promise that was broken."""

    #: Of its file, without the ending.
    name: str
    #: The command that runs it again.
    again: str
    #: How it is kept, so that the tests try it from now on.
    keep: str
    #: All that was said of it.
    story: str

    def write(self, directory: Path) -> Path:
        """Put it into a file, which is returned. Only this says that anything was found.

        Raises:
            OSError: the file cannot be written.
        """
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"{self.name}.txt"
        text = f"again: {self.again}\nkeep:  {self.keep}\n\n{self.story}\n"
        path.write_text(text, encoding="utf-8")
        return path


def written(directory: Path) -> list[Path]:
    """The findings in a directory, which need not be there, by name."""
    return sorted(directory.glob("*.txt"))


def heading(path: Path) -> str:
    """The head of a finding: how it is run again, and how it is kept."""
    return path.read_text(encoding="utf-8").partition("\n\n")[0]
