"""The files that a deployment begins with, as they come with the program: looked up, and written out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.metadata_log.errors import QuorateError

_HOME: Final = Path(__file__).parent
#: Folders here, and what is in them.
KINDS: Final = {
    "systemd": "units of a controller, of brokers, of a backup and its timer, and the environment of the backup",
    "container": "a file for docker build or podman build",
    "kubernetes": "manifests: founding.yaml, once; controllers.yaml; backup.yaml",
}


class FileThere(QuorateError):
    """A file of the same name is there already. Nothing was written."""


@dataclass(frozen=True, slots=True)
class DeploymentFile:
    """One file."""

    kind: str
    name: str

    @property
    def content(self) -> str:
        """Its text."""
        return (_HOME / self.kind / self.name).read_text(encoding="utf-8")


def files_of(kind: str) -> list[DeploymentFile]:
    """The files of a kind, by name."""
    return [DeploymentFile(kind, path.name) for path in sorted((_HOME / kind).iterdir()) if path.is_file()]


def write_out(kind: str, target: Path) -> list[Path]:
    """Write the files of a kind into a directory, which is made if missing; their paths.

    They hold no secret, and are for everybody to read, as systemd wants it of units.

    Raises:
        FileThere: one of the names is taken. OSError: the disk refuses.
    """
    files = {target / file.name: file.content for file in files_of(kind)}
    taken = [str(path) for path in files if path.exists() or path.is_symlink()]
    if taken:
        raise FileThere(f"{', '.join(taken)} is there already, and nothing is written over: name another directory")
    target.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        with path.open("x", encoding="utf-8") as file:
            file.write(content)
        path.chmod(0o644)
    return list(files)
