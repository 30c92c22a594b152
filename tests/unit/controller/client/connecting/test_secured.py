"""What is secret goes to other machines over TLS, or where somebody said that it may go without."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from quorate.broker.access_settings import BrokerAccessSettings
from quorate.broker.machine import on_this_machine
from quorate.broker.settings import BrokerSettings
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.targets import SecretInPlaintext
from quorate.scripts.terminal.places.controllers import is_insecure

SECRET = b"s" * 32
FAR, NEAR = "10.0.0.1:8080", "127.0.0.1:8080"


@pytest.mark.parametrize("far", [FAR, "http://10.0.0.1:8080", "http://controller.example:80", "http://[::]:80"])
def test_secret_is_sent_to_no_other_machine_in_plaintext(far: str) -> None:
    with pytest.raises(SecretInPlaintext, match="a secret is sent to no other machine without TLS"):
        ControllerClient([NEAR, far], shared_secret=SECRET)


async def test_controller_that_is_asked_later_is_sent_it_neither() -> None:
    async with ControllerClient([NEAR], shared_secret=SECRET) as client:
        with pytest.raises(SecretInPlaintext, match=r"http://10\.0\.0\.1:8080: "):
            await client.status_of(f"http://{FAR}", 100)


async def test_whoever_has_nothing_to_hide_or_tls_or_the_exception_asks() -> None:
    for near in (NEAR, "localhost:80", "http://[::1]:80"):
        await ControllerClient([near], shared_secret=SECRET).close()
    await ControllerClient([FAR]).close()
    await ControllerClient([f"https://{FAR}"], shared_secret=SECRET).close()
    await ControllerClient([FAR], shared_secret=SECRET, tls=ssl.create_default_context).close()
    await ControllerClient([FAR], shared_secret=SECRET, insecure=True).close()


@pytest.mark.parametrize(("insecure", "is_sent"), [(False, False), (True, True)])
def test_broker_sends_its_token_as_its_settings_say(tmp_path: Path, *, insecure: bool, is_sent: bool) -> None:
    settings = BrokerSettings(ids=(11,), controllers=(FAR,), access=BrokerAccessSettings(insecure=insecure))

    async def begin() -> bool:
        async with on_this_machine(settings, SECRET):
            return True

    if is_sent:
        assert asyncio.run(begin())
        return
    with pytest.raises(SecretInPlaintext, match=r"access\.insecure"):
        asyncio.run(begin())


@pytest.mark.parametrize(("said", "is_said"), [(None, False), ("", False), ("0", False), ("1", True), ("yes", None)])
def test_commands_take_the_exception_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, said: str | None, *, is_said: bool | None
) -> None:
    monkeypatch.delenv("QUORATE_INSECURE", raising=False)
    if said is not None:
        monkeypatch.setenv("QUORATE_INSECURE", said)
    if is_said is None:
        with pytest.raises(Exception, match="QUORATE_INSECURE is 'yes': it must be 1, or not set"):
            is_insecure()
    else:
        assert is_insecure() is is_said
