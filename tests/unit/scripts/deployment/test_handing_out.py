"""`quorate deployment`: the files as they come with the program, never over what is there; the container file."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner

from quorate.scripts.cli.clusters.deployment import app
from quorate.scripts.deployment.handing_out import KINDS, FileThere, files_of
from quorate.scripts.terminal import exit_codes
from tests.architecture.source_tree import ROOT
from tests.unit.scripts.deployment.what_files_say import parsed, unknown_variables

(CONTAINERFILE,) = files_of("container")


@pytest.mark.parametrize("kind", KINDS)
def test_files_are_written_out_for_everybody_to_read_and_once(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "a" / "b"
    written = CliRunner().invoke(app, ["write", kind, "--to", str(target)])
    assert written.exit_code == exit_codes.DONE, written.output
    assert {path.name: path.read_text() for path in target.iterdir()} == {
        one.name: one.content for one in files_of(kind)
    }
    assert {stat.S_IMODE(path.stat().st_mode) for path in target.iterdir()} == {0o644}
    assert files_of(kind), "there are some"
    last = max(target.iterdir())
    for path in target.iterdir():
        if path != last:
            path.unlink()
    last.write_text("changed")
    again = CliRunner().invoke(app, ["write", kind, "--to", str(target)])
    assert isinstance(again.exception, FileThere)
    assert str(last) in str(again.exception)
    assert [path.read_text() for path in target.iterdir()] == ["changed"]


def test_name_that_a_link_to_nothing_has_is_taken_too(tmp_path: Path) -> None:
    last = files_of("systemd")[-1].name
    (tmp_path / last).symlink_to(tmp_path / "nothing")
    refused = CliRunner().invoke(app, ["write", "systemd", "--to", str(tmp_path)])
    assert isinstance(refused.exception, FileThere)
    assert [path.name for path in tmp_path.iterdir()] == [last]


def test_list_names_every_file_and_a_kind_that_is_none_is_refused(tmp_path: Path) -> None:
    listed = CliRunner().invoke(app, ["list"]).output
    assert all(f"  {file.name}\n" in listed for kind in KINDS for file in files_of(kind))
    refused = CliRunner().invoke(app, ["write", "nomad", "--to", str(tmp_path / "x")])
    assert (refused.exit_code, (tmp_path / "x").exists()) == (exit_codes.USAGE, False)


# --- the container file ------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    joined = CONTAINERFILE.content.replace("\\\n", " ")
    lines = [line for line in joined.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def last_stage() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for word, rest in instructions():
        if word == "FROM":
            found = {}
        found.setdefault(word, []).append(rest)
    return found


def test_container_is_built_in_a_stage_of_its_own_and_runs_as_nobody_in_particular_without_a_shell() -> None:
    words = [word for word, _ in instructions()]
    assert words.count("FROM") == 2
    stage = last_stage()
    assert stage["USER"] == ["10001:10001"]
    assert "RUN" not in stage, "nothing is run in the image that is shipped"
    for word, rest in instructions():
        if word in ("RUN", "ENTRYPOINT", "CMD"):
            json.loads(rest)  # the form without a shell
    assert "wheel" in CONTAINERFILE.content.partition("\nFROM ${PYTHON}\n")[0]


def test_container_starts_and_looks_after_what_the_program_has() -> None:
    stage = last_stage()
    (entry,) = json.loads(stage["ENTRYPOINT"][0])
    assert entry == "/opt/quorate/bin/quorate"
    assert parsed(json.loads(stage["CMD"][0]))["config"] == Path("/etc/quorate/controller.toml")
    program, *check = json.loads(stage["HEALTHCHECK"][0].partition("CMD ")[2])
    variables = dict(part.split("=", 1) for part in stage["ENV"][0].split())
    socket = variables["QUORATE_CONTROLLER_HTTP__UNIX_SOCKET"]
    assert (program, parsed(check)["controllers"]) == (entry, f"unix:{socket}")
    assert not unknown_variables(sorted(variables), ())
    volume = json.loads(stage["VOLUME"][0])
    assert socket.startswith(volume[0])


def test_deployment_files_come_with_the_package() -> None:
    """What the wheel leaves out is named in the project file; nothing of them may be."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert not re.findall(r'"/src/quorate/scripts/deployment', text)
    assert (ROOT / "src" / "quorate" / "scripts" / "deployment" / "systemd").is_dir()
