"""What a server's process imports: nothing that no server uses."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

#: Takes the command as it is called, then says what is there.
_LOOK = """
import json, os, sys
import typer
from quorate.scripts.cli.__main__ import _COMMANDS
before = os.environ.get("SSL_CERT_FILE")
_COMMANDS[sys.argv[1]].add(typer.Typer())
import aiohttp.connector
print(json.dumps({
    "modules": sorted(sys.modules),
    "is_environment_kept": os.environ.get("SSL_CERT_FILE") == before,
    "certificates": aiohttp.connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509_ca"],
}))
import rich.console
"""

#: What reads and writes records: a dataclass each, a tenth of a command's time.
_OF_LOGS = ("quorate.metadata_log.records.records", "quorate.metadata_log.batches.batch")


@pytest.mark.parametrize("command", ["controller", "broker"])
@pytest.mark.parametrize("certificates", [None, "/etc/ssl/certs/ca-certificates.crt"])
def test_server_start_leaves_out_what_no_server_uses(command: str, certificates: str | None) -> None:
    """The part of a library that is left out can still be had by whoever wants it: `rich` is imported at the end."""
    environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_FILE"}
    if certificates is not None:
        environment["SSL_CERT_FILE"] = certificates
    done = subprocess.run(
        [sys.executable, "-c", _LOOK, command], env=environment, check=True, capture_output=True, text=True
    )
    seen = json.loads(done.stdout)
    assert {"rich", "pygments", "prometheus_client"} & set(seen["modules"]) == set()
    assert seen["is_environment_kept"]
    assert seen["certificates"] == 0


@pytest.mark.parametrize(
    "command", ["topics", "partitions", "brokers", "quorum", "reassign", "elect", "configs", "acls"]
)
def test_command_that_only_asks_leaves_out_columns_and_servers(command: str) -> None:
    done = subprocess.run([sys.executable, "-c", _LOOK, command], check=True, capture_output=True, text=True)
    modules = set(json.loads(done.stdout)["modules"])
    assert {"numpy", "rich", "prometheus_client", "structlog", "aiohttp.web", *_OF_LOGS} & modules == set()


@pytest.mark.parametrize("command", ["status", "explain"])
def test_question_that_must_be_quick_leaves_out_records(command: str) -> None:
    done = subprocess.run([sys.executable, "-c", _LOOK, command], check=True, capture_output=True, text=True)
    modules = set(json.loads(done.stdout)["modules"])
    assert {"numpy", "structlog", "aiohttp.web", *_OF_LOGS} & modules == set()


@pytest.mark.parametrize("command", ["history", "timeline", "log", "image"])
def test_command_that_looks_into_files_leaves_out_what_asks_a_cluster(command: str) -> None:
    look = _LOOK.replace("import aiohttp.connector\n", "import quorate.scripts.terminal.command_line\n")
    look = look.replace('"certificates": aiohttp.connector._SSL_CONTEXT_VERIFIED.cert_store_stats()["x509_ca"],', "")
    done = subprocess.run([sys.executable, "-c", look, command], check=True, capture_output=True, text=True)
    assert {"aiohttp", "pydantic", "ssl"} & set(json.loads(done.stdout)["modules"]) == set()
