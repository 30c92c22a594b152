"""`scripts/spark-cluster`: a standalone Spark cluster on loopback, one master and its workers, each a process."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from quorate.scripts.terminal import exit_codes
from quorate.scripts.terminal.command_line import run

Directory = Annotated[
    Path, typer.Option("--dir", metavar="DIR", help="Where its state, logs and temporary files are kept.")
]
_DIRECTORY: Final = Path("var-spark")

app = typer.Typer(
    help="A standalone Spark cluster on this machine: all on loopback, with a secret of its own for its jobs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command()
def start(
    directory: Directory = _DIRECTORY,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, metavar="N", help="How many workers.")] = 2,
    cores: Annotated[int, typer.Option("--cores", min=1, max=1024, metavar="N", help="Cores of each worker.")] = 1,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory of each worker, as 2g.")] = "1g",
) -> None:
    """Start a master and workers, and say what to give to a job.

    Example: scripts/spark-cluster start --dir var-spark
    """
    from quorate.pipeline.spark.standalone import PRIVATE_SETTINGS, start_cluster

    cluster = start_cluster(directory.resolve(), workers, cores, memory)
    access = f"--master {cluster.master_url} --spark-conf {directory / PRIVATE_SETTINGS}"
    sys.stdout.write(f"The cluster is up, {workers} workers: quorate pipeline JOB {access}\n")


@app.command()
def stop(directory: Directory = _DIRECTORY) -> None:
    """End the cluster's processes. Where there is none, nothing is done.

    Example: scripts/spark-cluster stop --dir var-spark
    """
    from quorate.pipeline.spark.standalone import stop_cluster

    cluster = stop_cluster(directory.resolve())
    sys.stdout.write("There is no cluster.\n" if cluster is None else "The cluster has ended.\n")


@app.command()
def status(
    directory: Directory = _DIRECTORY,
    as_json: Annotated[bool, typer.Option("--json", help="Everything known, as JSON.")] = False,
) -> None:
    """Show which of the cluster's processes live; exit code 1 where one does not, or there is no cluster.

    Example: scripts/spark-cluster status --json
    """
    from quorate.pipeline.spark.standalone import read_cluster

    cluster = read_cluster(directory.resolve())
    processes = () if cluster is None else cluster.processes
    if as_json:
        rows = [{"name": one.name, "pid": one.pid, "is_alive": one.is_alive} for one in processes]
        document = {"master_url": None if cluster is None else cluster.master_url, "processes": rows}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    elif cluster is None:
        sys.stdout.write("There is no cluster.\n")
    else:
        sys.stdout.write(f"{cluster.master_url}\n")
        sys.stdout.writelines(
            f"  {one.name}  process {one.pid}  {'alive' if one.is_alive else 'dead'}\n" for one in processes
        )
    if not processes or not all(one.is_alive for one in processes):
        raise typer.Exit(exit_codes.REFUSED)


if __name__ == "__main__":
    run(app, sys.argv[1:], "scripts/spark-cluster")
