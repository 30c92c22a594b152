"""Users who log in, as docs/security.md has it: its settings are read, its commands run; the audit names the proof."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from quorate.controller.engine.interfaces import DecidedWrite
from quorate.controller.process.access_settings import AccessSettings
from quorate.controller.protocol import CreatableTopic, CreateTopicsRequest
from quorate.metadata_log.errors import ApiError
from tests.integration.access.login_stage import ROOT_TOKEN, login_servers
from tests.integration.commands import alone

PAGE = (Path(__file__).parents[3] / "docs" / "security.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Users who log in\n")[2].partition("\n## ")[0]
(SETTINGS,) = re.findall(r"```toml\n(.*?)```", SECTION, re.DOTALL)
(COMMANDS,) = re.findall(r"```sh\n(.*?)```", SECTION, re.DOTALL)
#: Besides their answer, by those that say anything: others may be shown more.
SAID = {"scripts/quorate topics list": "quorate: only topics that User:ana may describe are shown\n"}


def test_settings_of_the_page_are_those_by_which_users_log_in() -> None:
    access = AccessSettings.model_validate(tomllib.loads(SETTINGS)["access"], strict=False)
    assert access.login_mechanisms == ("SCRAM-SHA-256", "SCRAM-SHA-512")


def keep_secrets(home: Path) -> None:
    """The files that the page takes for granted."""
    for name, text in (("admin.token", ROOT_TOKEN), ("ana.password", "another one")):
        (home / name).touch(0o600)
        (home / name).write_text(f"{text}\n", encoding="ascii")


async def test_commands_of_the_page_log_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keep_secrets(tmp_path)
    async with login_servers(tmp_path) as s:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("QUORATE_CONTROLLERS", ",".join(s.urls))
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
        for line in COMMANDS.splitlines():
            words = shlex.split(line, comments=True)
            if words[0] == "export":
                for assigned in words[1:]:
                    monkeypatch.setenv(*assigned.split("=", 1))
            elif words[0] == "unset":
                monkeypatch.delenv(words[1])
            elif words[0] == "scripts/quorate":
                ended = await alone(*words[1:])
                assert (ended.code, ended.err) == (0, SAID.get(line.partition("#")[0].strip(), "")), (line, ended)
            else:
                assert words == ["umask", "077"], line
        async with s.client("ana", "pencil") as before:
            with pytest.raises(ApiError, match="cannot log in"):
                await before.list_topics()


@pytest.mark.parametrize("asked", [1, 2])
async def test_audit_names_the_proof_of_who_logged_in(tmp_path: Path, asked: int) -> None:
    async with login_servers(tmp_path) as s:
        told: list[DecidedWrite] = []
        s.stage.members[1].controller.on_decided = told.append
        sent = {"Authorization": f"Bearer {await s.log_in('ana', 'pencil')}"}
        body = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
        url = s.stage.members[asked].url + "/v1/topics"
        async with s.plain.post(url, json=body.model_dump(), headers=sent) as answer:
            assert answer.status == 200
        origin = told[-1].origin
        assert origin is not None
        assert (origin.principal, origin.proof) == ("User:ana", "scram")
