"""Registrations of controllers over HTTP, and the part of a controller process that makes them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

from quorate.controller.api.resources import ControllerReply
from quorate.controller.brokers.controller_registration import own_registration
from quorate.controller.client.client import ControllerClient
from quorate.controller.process.registrar import Registrar
from quorate.controller.protocol.brokers import Listener
from tests.integration.http_stage import Bad, Stage, stage
from tests.waiting import eventually

REGISTER: Final = "/v1/controller-rpc/register"
ID: Final = "A" * 21 + "Q"
LISTENER: Final = {"name": "HTTP", "host": "127.0.0.1", "port": 80}
FEATURE: Final = {"name": "metadata.version", "min_supported_version": 7, "max_supported_version": 30}
GOOD: Final[dict[str, Any]] = {
    "controller_id": 2,
    "incarnation_id": ID,
    "listeners": [LISTENER],
    "features": [FEATURE],
}


@asynccontextmanager
async def registering(s: Stage, node_ids: Sequence[int], incarnation: int) -> AsyncIterator[None]:
    """What controller processes do by themselves."""
    async with ControllerClient(s.urls) as client:
        registrars = []
        for node_id in node_ids:
            member = s.members[node_id]
            listeners = [Listener(name="HTTP", host="127.0.0.1", port=int(member.url.rpartition(":")[2]))]
            own = own_registration(node_id, bytes([incarnation, node_id] * 8), listeners)
            registrars.append(Registrar(member.controller, own, client))
            member.controller.on_stable = registrars[-1].moved
        tasks = [asyncio.create_task(registrar.run()) for registrar in registrars]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def registered(s: Stage) -> dict[int, ControllerReply]:
    async with ControllerClient(s.urls) as client:
        return {one.id: one for one in (await client.describe_controllers()).controllers}


async def test_controllers_register_by_themselves_and_again_as_new_processes() -> None:
    async with stage(3) as s:
        seen = await registered(s)
        assert [(c.id, c.is_voter, c.is_registered, c.incarnation_id) for c in seen.values()] == [
            (node_id, True, False, None) for node_id in (1, 2, 3)
        ]

        async def have_incarnation(incarnation: int, *node_ids: int) -> bool:
            known = await registered(s)
            return all(known[id_].incarnation_id == bytes([incarnation, id_] * 8) for id_ in node_ids)

        async with registering(s, (1, 2, 3), 1):
            await eventually(lambda: have_incarnation(1, 1, 2, 3), "all have registered")
        seen = await registered(s)
        assert {f"http://127.0.0.1:{c.listeners[0].port}" for c in seen.values()} == set(s.urls)
        assert {f.name: f.max_supported_version for f in seen[2].features}["metadata.version"] == 30
        async with registering(s, (2,), 2):
            await eventually(lambda: have_incarnation(2, 2), "the new process has registered")
        assert await have_incarnation(1, 1, 3), "the others' registrations stay"


async def test_controller_registers_as_soon_as_somebody_is_active() -> None:
    async with stage(2, active=None) as s, registering(s, (1, 2), 1):
        await s.elect(2)

        async def all_are() -> bool:
            return all(one.is_registered for one in (await registered(s)).values())

        await eventually(all_are, "both have registered")
        end = s.quorum.log_end_offset
        await s.elect(1)
        await s.register(1, 11)
        assert not any(is_registration(batch) for batch in s.quorum.batches if batch_begin(batch) >= end)


def batch_begin(batch: bytes) -> int:
    return int.from_bytes(batch[:8], "big")


def is_registration(batch: bytes) -> bool:
    """Whether a listener of a controller is in it."""
    return b"HTTP" in batch


async def test_registered_controller_that_is_no_voter_is_shown_as_such() -> None:
    async with stage(2) as s:
        assert (await s.ask(2, "POST", REGISTER, GOOD | {"controller_id": 77}))[0] == 200
        assert (await s.ask(2, "POST", REGISTER, GOOD | {"controller_id": 77}))[0] == 200, "it may be sent again"
        stranger = (await registered(s))[77]
        assert (stranger.is_voter, stranger.is_registered) == (False, True)
        assert stranger.features[0].model_dump() == FEATURE


async def test_bad_registrations_are_refused_and_change_nothing() -> None:
    form = [
        ("no body", {}, "must be given"),
        ("negative id", GOOD | {"controller_id": -1}, "greater than or equal"),
        ("huge id", GOOD | {"controller_id": 2**31}, "less than or equal"),
        ("text for an id", GOOD | {"controller_id": "2"}, "valid integer"),
        ("null for an id", GOOD | {"controller_id": None}, "valid integer"),
        ("incarnation that is no uuid", GOOD | {"incarnation_id": "short"}, "is no uuid"),
        ("null for listeners", GOOD | {"listeners": None}, "valid array"),
        ("too many listeners", GOOD | {"listeners": [LISTENER] * 101}, "at most 100"),
        ("port over the highest", GOOD | {"listeners": [LISTENER | {"port": 65_536}]}, "less than or equal"),
        ("negative port", GOOD | {"listeners": [LISTENER | {"port": -1}]}, "greater than or equal"),
        ("host too long", GOOD | {"listeners": [LISTENER | {"host": "h" * 40_000}]}, "at most 32767"),
        ("host of too many bytes", GOOD | {"listeners": [LISTENER | {"host": "é" * 20_000}]}, "at most 32767 bytes"),
        ("too many features", GOOD | {"features": [FEATURE] * 101}, "at most 100"),
        ("huge level", GOOD | {"features": [FEATURE | {"max_supported_version": 40_000}]}, "less than or equal"),
        ("unknown field", GOOD | {"colour": "red"}, "is not known"),
    ]
    rules = [
        ("two listeners of a name", GOOD | {"listeners": [LISTENER] * 2}, "Two listeners"),
        ("unknown protocol", GOOD | {"listeners": [LISTENER | {"security_protocol": 9}]}, "security protocol 9"),
        ("feature listed twice", GOOD | {"features": [FEATURE] * 2}, "listed twice"),
    ]
    cases = [Bad(name, "POST", REGISTER, body, 400, "INVALID_REQUEST", says) for name, body, says in form]
    cases += [Bad(name, "POST", REGISTER, body, 422, "INVALID_REGISTRATION", says) for name, body, says in rules]
    async with stage(2) as s:
        end, image = s.quorum.log_end_offset, s.members[1].controller.stable
        for bad in cases:
            for node_id in (1, 2):
                status, reply, _ = await s.ask(node_id, bad.method, bad.path, bad.body)
                assert (status, reply["error"]) == (bad.status, bad.error), (bad.name, reply)
                assert bad.says in reply["message"], (bad.name, reply)
        assert (s.quorum.log_end_offset, s.members[1].controller.stable) == (end, image)
