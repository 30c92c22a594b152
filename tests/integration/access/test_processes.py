"""Real controllers and a broker with an authorizer: they know each other, clients are their tokens, and no more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from quorate.controller.client.client import ControllerClient
from quorate.controller.identity.bearer_tokens import token_line
from quorate.controller.protocol import BrokerHeartbeatRequest, CreatableTopic, CreateTopicsRequest
from quorate.controller.protocol.acls import AclCreation, CreateAclsRequest
from quorate.metadata_log.errors import ApiError, ErrorCode
from tests.integration.own_machines import READY_S, OwnMachines, own_machines
from tests.waiting import eventually

ADMIN, ANA, BROKER, OTHER = "a" * 43, "b" * 43, "c" * 43, "d" * 43
TOKENS = {ADMIN: "User:admin", ANA: "User:ana", BROKER: "Broker:11", OTHER: "Broker:12"}
ACCESS = '[access]\nauthorizer = "acl"\nsuper_users = ["User:admin"]\ntokens_file = "{file}"\n'


def guard(home: Path) -> None:
    """Give the controllers an authorizer and tokens, and the broker its own instead of the secret."""
    for name, text in (
        ("tokens", "".join(f"{token_line(token, principal)}\n" for token, principal in TOKENS.items())),
        ("broker.token", f"{BROKER}\n"),
    ):
        with os.fdopen(os.open(home / name, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(text)
    for path in home.glob("controller-*.toml"):
        path.write_text(path.read_text() + "\n" + ACCESS.format(file=home / "tokens"))
    broker = home / "broker.toml"
    broker.write_text(broker.read_text().replace(str(home / "secret"), str(home / "broker.token")))


async def brought_up(cluster: OwnMachines) -> None:
    """Three controllers that vote and know each other, and a broker that is alive."""
    guard(cluster.home / "etc")
    for node in cluster.controllers:
        made = await cluster.format(node, "--founding")
        assert made.code == 0, made
    for node in cluster.controllers:
        await cluster.start(node)
    await cluster.all_vote()

    async def all_registered() -> bool:
        return all(one.is_registered for one in (await cluster.client.describe_controllers()).controllers)

    await eventually(all_registered, "controllers have registered with each other", READY_S)
    await cluster.start_broker(11)

    async def is_alive() -> bool:
        brokers = (await cluster.client.describe_brokers()).brokers
        return any((one.id, one.state) == (11, "active") for one in brokers)

    await eventually(is_alive, "the broker is alive by its token", READY_S)


async def code_of(client: ControllerClient, name: str) -> ErrorCode:
    """What becomes of the creation of a topic."""
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    try:
        await client.create_topics(CreateTopicsRequest(topics=[topic]))
    except ApiError as error:
        return error.code
    return ErrorCode.NONE


async def test_processes_with_an_authorizer_work_by_tokens_and_seals_alone(tmp_path: Path) -> None:
    async with own_machines(tmp_path) as cluster, ControllerClient([*cluster.controllers.values()]) as nobody:
        urls = [*cluster.controllers.values()]
        secret = (tmp_path / "etc" / "secret").read_bytes().strip()
        await cluster.client.close()
        async with (
            ControllerClient(urls, shared_secret=ADMIN.encode()) as cluster.client,
            ControllerClient(urls, shared_secret=secret) as by_secret,
            ControllerClient(urls, shared_secret=OTHER.encode()) as other_broker,
        ):
            await brought_up(cluster)
            (broker,) = (await cluster.client.describe_brokers()).brokers
            beat = BrokerHeartbeatRequest(
                broker_id=11, broker_epoch=broker.epoch, current_metadata_offset=0, want_fence=True
            )
            for client in (nobody, by_secret, other_broker):
                with pytest.raises(ApiError) as refused:
                    await client.broker_heartbeat(beat)
                assert refused.value.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            creation = AclCreation(
                resource_type="TOPIC", resource_name="mine", principal="User:ana", operation="CREATE",
                permission_type="ALLOW",
            )  # fmt: skip
            await cluster.client.access.create_acls(CreateAclsRequest(creations=[creation]))
            for url in urls:
                async with ControllerClient([url], shared_secret=ANA.encode()) as ana:
                    is_first = url == urls[0]
                    assert await code_of(ana, "its") is ErrorCode.TOPIC_AUTHORIZATION_FAILED
                    made = ErrorCode.NONE if is_first else ErrorCode.TOPIC_ALREADY_EXISTS
                    assert await code_of(ana, "mine") is made
                    assert (await ana.list_topics(consistency="linearizable")).topics == []
            listed = await cluster.client.list_topics(consistency="linearizable")
            assert [one.name for one in listed.topics] == ["mine"]
            assert (await cluster.client.describe_brokers()).brokers[0].state == "active"
