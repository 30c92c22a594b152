"""`quorate pipeline pack`: what `spark-submit` needs of us."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from quorate.pipeline.files.uris import local


def pack(
    target: Annotated[Path, typer.Argument(metavar="FILE", parser=local, help="The archive to write, as quorate.zip.")],
) -> None:
    """Write our packages as one archive for `spark-submit --py-files`.

    Example: quorate pipeline pack quorate.zip
    """
    from quorate.pipeline.spark.shipping import write_packages

    write_packages(target)
    sys.stdout.write(f"{target} was written, {target.stat().st_size} bytes.\n")
