"""Our packages as one file, for `--py-files`: what the Python workers on other machines need of us."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Final

import quorate

#: What a worker imports: the jobs, the format of the log, the definition of the digest.
PACKAGES: Final = ("metadata_log", "pipeline", "snapshots")

#: No file is newer than any: the same packages are the same bytes.
_TIME: Final = (1980, 1, 1, 0, 0, 0)


def write_packages(target: Path) -> Path:
    """Write the packages to a zip archive that Python imports from, and return its path."""
    root = Path(quorate.__file__).parent.parent
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        packages = [path for package in PACKAGES for path in sorted((root / "quorate" / package).rglob("*"))]
        for path in (root / "quorate" / "__init__.py", *packages):
            if path.is_file() and "__pycache__" not in path.parts:
                entry = zipfile.ZipInfo(path.relative_to(root).as_posix(), _TIME)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())
    return target
