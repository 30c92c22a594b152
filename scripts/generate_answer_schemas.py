"""Write docs/schemas, what commands write with `--json`: `python -m quorate.scripts.generate_answer_schemas`.

Whoever reads these documents goes by their `schema_version`. So a schema under which an older reader would not
understand them is not written before that number grows (``documents.SCHEMA_VERSION``). A test compares the files with
what this makes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from quorate.scripts.cli.shell.answer_schemas import (
    ANSWERS,
    FORMS,
    broken_promises,
    file_name,
    schema_of,
    schema_text,
    version_of,
)

DIRECTORY: Final = Path(__file__).resolve().parent.parent / "docs" / "schemas"


def made() -> dict[str, dict[str, Any]]:
    """The schemas by the names of their files."""
    return {file_name(command): schema_of(command) for command in (*ANSWERS, *FORMS)}


def complaints(directory: Path, schemas: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The promises of the files in a directory that these schemas break under the same version: a line each."""
    told = []
    for file in sorted(directory.glob("*.json")):
        old = json.loads(file.read_text(encoding="utf-8"))
        new = schemas.get(file.name, {})
        if not new:
            told.append(f"{file.name}: the command has no answer any more")
        elif version_of(new) == version_of(old):
            told += [f"{file.name}: {place} is not what it was" for place in broken_promises(old, new)]
    return told


def write(directory: Path, schemas: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write the files, and nothing else into the directory; or nothing, and return why."""
    if told := complaints(directory, schemas):
        return told
    directory.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas.items():
        (directory / name).write_text(schema_text(schema), encoding="utf-8")
    return []


def main() -> None:
    """Write them all."""
    told = write(DIRECTORY, made())
    if told:
        sys.exit("\n".join([*told, "raise SCHEMA_VERSION in scripts/terminal/programs/documents.py, or take it back"]))


if __name__ == "__main__":
    main()
