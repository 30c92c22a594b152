"""Units of systemd: systemd takes them, and they start what the program is started by."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from quorate.controller.process.settings import ControllerSettings
from quorate.scripts.deployment.handing_out import DeploymentFile, files_of, write_out
from quorate.scripts.logins.cluster_variables import REPLACED_VARIABLES
from tests.unit.scripts.deployment.what_files_say import parsed, settings_in_documents, unknown_variables

UNITS = {file.name: file for file in files_of("systemd")}
SERVICES = [name for name in UNITS if name.endswith(".service")]
PROGRAM = "/opt/quorate/bin/quorate"


def values(unit: DeploymentFile, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit.content, flags=re.MULTILINE)


def command_of(name: str) -> list[str]:
    """The arguments of instance 1."""
    (line,) = values(UNITS[name], "ExecStart")
    program, *arguments = shlex.split(line.replace("%i", "1"))
    assert program == PROGRAM
    return arguments


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not on this machine")
def test_systemd_takes_the_units_and_finds_nothing_to_say(tmp_path: Path) -> None:
    for path in write_out("systemd", tmp_path):
        # Whether the program is there is another machine's business.
        path.write_text(path.read_text(encoding="utf-8").replace(PROGRAM, "/bin/true"), encoding="utf-8")
    names = [name for name in UNITS if not name.endswith(".env")]
    said = subprocess.run(
        ["systemd-analyze", "verify", *names], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    ours = [line for line in said.stderr.splitlines() if "quorate" in line]
    assert (said.returncode, ours) == (0, [])


def test_units_start_the_program_with_arguments_that_it_takes() -> None:
    controller = parsed(command_of("quorate-controller@.service"))
    assert controller["config"] == Path("/etc/quorate/controller-1.toml")
    broker = parsed(command_of("quorate-broker@.service"))
    assert (broker["config"], broker["ids"]) == (Path("/etc/quorate/broker.toml"), "1")
    assert {text.partition("=")[0] for text in broker["overrides"]} <= settings_in_documents("## Broker")
    assert parsed(command_of("quorate-backup.service"))["directory"] == Path("/var/lib/quorate-backups")


@pytest.mark.parametrize("name", SERVICES)
def test_services_keep_what_hardens_them(name: str) -> None:
    unit = UNITS[name]
    for line in (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "CapabilityBoundingSet=",
        "MemoryDenyWriteExecute=yes",
        "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
        "SystemCallFilter=@system-service",
        "UMask=0077",
        "User=quorate",
        "StateDirectoryMode=0700",
    ):
        assert line in unit.content.splitlines()


def test_services_may_write_where_they_write_and_have_the_time_that_they_take() -> None:
    (directory,) = values(UNITS["quorate-backup.service"], "StateDirectory")
    assert parsed(command_of("quorate-backup.service"))["directory"] == Path("/var/lib") / directory
    for name in ("quorate-controller@.service", "quorate-broker@.service"):
        unit = UNITS[name]
        assert (values(unit, "StateDirectory"), values(unit, "Type")) == (["quorate"], ["notify"])
        open_files = int(values(unit, "LimitNOFILE")[0])
        assert open_files >= 2 * ControllerSettings.model_fields["http"].annotation().connections_max  # type: ignore[misc]
    from quorate.broker.settings import BrokerSettings

    lifecycle = BrokerSettings.model_fields["lifecycle"].annotation
    assert lifecycle is not None
    stop_s = int(values(UNITS["quorate-broker@.service"], "TimeoutStopSec")[0].removesuffix("s"))
    assert stop_s * 1000 > lifecycle().shutdown_timeout_ms


def test_backup_asks_as_whom_its_environment_names() -> None:
    (file,) = values(UNITS["quorate-backup.service"], "EnvironmentFile")
    assert Path(file).name in UNITS
    names = re.findall(r"^([A-Z_]+)=", UNITS[Path(file).name].content, flags=re.MULTILINE)
    assert names
    assert not unknown_variables(names, sorted(REPLACED_VARIABLES))
    assert "quorate-backup.timer" in UNITS
