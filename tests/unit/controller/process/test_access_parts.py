"""Access control as settings make it: what depends on the secrets of the quorum, and what must not."""

from __future__ import annotations

from pathlib import Path

from quorate.controller.process.access_parts import access_parts
from quorate.controller.process.settings import ControllerSettings
from quorate.controller.process.settings_source import load_settings
from quorate.controller.scram.client import ScramClient
from quorate.controller.scram.http_fields import HttpStep
from quorate.controller.scram.messages import server_first
from quorate.scripts.cluster.formatting import new_id
from quorate.scripts.cluster.own_machines import NewController, write_settings

MECHANISM = "SCRAM-SHA-256"
OLD, NEW = b"o" * 40, b"n" * 40


def salt_of_nobody(home: Path, name: str, *believed: bytes) -> bytes:
    """The salt for a user that is not there, by a controller of these settings that believes these secrets."""
    settings = load_settings(
        ControllerSettings, home / "controller-1.toml", (f'access.login_mechanisms=["{MECHANISM}"]',), {}
    )
    logins = access_parts(settings, "cluster", lambda: believed, None).logins
    assert logins is not None
    client = ScramClient(MECHANISM, name, "pencil", "client")
    return server_first(logins.begin(HttpStep(MECHANISM, "", client.first())).message).salt


def test_salts_of_users_that_are_not_there_stay_while_secrets_are_exchanged(tmp_path: Path) -> None:
    """Those of users stay: whoever sees one change would know that nobody has the name."""
    for name in ("one", "other"):
        made = [NewController(1, "127.0.0.1:1", "127.0.0.1:2")]
        write_settings(tmp_path / name, new_id(), made, str(tmp_path / "data"), admin="User:root")
    one = tmp_path / "one"
    steps = [(OLD,), (OLD, NEW), (NEW, OLD), (NEW,)]
    assert len({salt_of_nobody(one, "nobody", *believed) for believed in steps}) == 1
    assert salt_of_nobody(one, "nobody", OLD) != salt_of_nobody(one, "nobody else", OLD)
    assert salt_of_nobody(one, "nobody", OLD) != salt_of_nobody(tmp_path / "other", "nobody", OLD)
