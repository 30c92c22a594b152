"""Three controller processes with certificates: their CA changes under writes, and nobody is elected for it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.client.client import ControllerClient
from quorate.controller.protocol.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterQuotaOp,
    QuotaEntityPart,
)
from quorate.scripts.certificates.authority import CertificateAuthority
from tests.integration.made_certificates import authority, issued, written
from tests.integration.own_machines import READY_S, OwnMachines, own_machines
from tests.waiting import eventually

OLD, NEW = authority("old"), authority("new")


def give_certificates(
    cluster: OwnMachines, issuer: CertificateAuthority, *trusts: CertificateAuthority
) -> dict[int, TlsPaths]:
    """To every controller."""
    return {
        node: written(
            cluster.home / f"tls-{node}",
            issued(issuer, f"127.0.0.{node}", uris=[f"quorate://{cluster.cluster_id}/controller/{node}"]),
            *trusts,
        )
        for node in cluster.controllers
    }


def name_certificates(cluster: OwnMachines, paths: dict[int, TlsPaths]) -> None:
    """In the settings of each controller."""
    for node, named in paths.items():
        with cluster.settings(node).open("a", encoding="utf-8") as settings:
            settings.write(
                f'\n[tls]\ncert_file = "{named.cert_file}"\nkey_file = "{named.key_file}"\n'
                f'ca_files = ["{named.ca_files[0]}"]\n'
            )


def client_of(cluster: OwnMachines, paths: TlsPaths, *nodes: int) -> ControllerClient:
    """A client of these that trusts whom a controller trusts."""
    secret = Path(cluster.secret_file).read_bytes().strip()
    trusted = TlsFiles(TlsPaths(ca_files=paths.ca_files))
    return ControllerClient([cluster.controllers[node] for node in nodes], shared_secret=secret, tls=trusted.as_client)


class Writer:
    """Writes one value after the other, and counts what was acknowledged."""

    def __init__(self, client: ControllerClient) -> None:
        self._client = client
        self.acknowledged = 0

    async def run(self) -> None:
        """Until it is cancelled; a refusal is the test's failure."""
        while True:
            ops = [AlterQuotaOp(key="producer_byte_rate", value=self.acknowledged + 1.0)]
            entry = AlterClientQuotasEntry(entity=[QuotaEntityPart(entity_type="user", entity_name="ana")], ops=ops)
            reply = await self._client.access.alter_client_quotas(AlterClientQuotasRequest(entries=[entry]))
            assert [one.error_code for one in reply.entries] == [0]
            self.acknowledged += 1

    async def go_on(self) -> None:
        """Until ten more are acknowledged."""
        wanted = self.acknowledged + 10

        async def look() -> bool:
            return self.acknowledged >= wanted

        await eventually(look, "writes are acknowledged", READY_S)


async def restart_a_standby(cluster: OwnMachines, active: int) -> None:
    """One that finds nobody whom it trusts, or who trusts it, would not come back."""
    node = next(one for one in cluster.controllers if one != active)
    await cluster.kill(node)
    await cluster.start(node)
    await cluster.all_vote()


async def test_ca_of_a_quorum_changes_under_writes_and_nobody_is_elected(tmp_path: Path) -> None:
    """All trust the new CA, too; then all have certificates of it; then the old one is forgotten. Nobody is restarted
    but one standby each time, to meet the others with what they have by then.
    """
    steps: Sequence[tuple[CertificateAuthority, Sequence[CertificateAuthority]]] = (
        (OLD, (OLD, NEW)),
        (NEW, (OLD, NEW)),
        (NEW, (NEW,)),
    )
    async with own_machines(tmp_path) as cluster:
        name_certificates(cluster, paths := give_certificates(cluster, OLD, OLD))
        for node in cluster.controllers:
            made = await cluster.format(node, "--founding")
            assert made.code == 0, made
            await cluster.start(node)
        async with client_of(cluster, paths[1], *cluster.controllers) as cluster.client:
            quorum = (await cluster.all_vote()).quorum
            active = quorum.active_id
            assert active is not None
            async with client_of(cluster, paths[1], active) as client, asyncio.TaskGroup() as tasks:
                writer = Writer(client)
                writing = tasks.create_task(writer.run())
                for issuer, trusts in steps:
                    give_certificates(cluster, issuer, *trusts)
                    await restart_a_standby(cluster, active)
                    await writer.go_on()
                writing.cancel()

            assert (await cluster.all_vote()).quorum.epoch == quorum.epoch
