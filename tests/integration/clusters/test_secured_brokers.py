"""Broker processes of `up`: they know who asks them, and let him do what the cluster's ACLs say."""

from __future__ import annotations

import ssl
from pathlib import Path

import aiohttp

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.protocol.acls import AclCreation, CreateAclsRequest
from quorate.scripts.certificates.authority import CertificateAuthority, Validity
from quorate.scripts.certificates.certificate_files import read_certificate_file, read_key_file, write_whole
from quorate.scripts.certificates.holders import CA_KEY_NAME, CA_NAME, client_holder
from quorate.scripts.certificates.local_files import CERTIFICATES_NAME, admin_tls
from tests.integration.running_cluster import running_cluster
from tests.waiting import eventually


def certificate_of(name: str, cluster: Path, place: Path) -> ssl.SSLContext:
    """The cluster's CA has issued it, to somebody who has no rights yet."""
    path = cluster / CERTIFICATES_NAME
    ca = CertificateAuthority.of(read_certificate_file(path / CA_NAME), read_key_file(path / CA_KEY_NAME))
    made = ca.issue(client_holder(name), Validity.of(1))
    write_whole(place, {"own.pem": made.certificate, "own.key": made.key})
    return TlsFiles(TlsPaths(place / "own.pem", place / "own.key", (path / CA_NAME,))).as_client()


async def test_certificate_alone_opens_no_broker_process_and_acls_and_its_administrator_do(tmp_path: Path) -> None:
    async with running_cluster(tmp_path / "var", 1, 1) as cluster, aiohttp.ClientSession() as session:
        ana, admin = certificate_of("ana", cluster.directory, tmp_path), admin_tls(cluster.directory)()
        url = next(iter(cluster.members.brokers.values())).url

        async def status(method: str, path: str, who: ssl.SSLContext) -> int:
            async with session.request(method, f"{url}{path}", json={"copy_bytes_per_s": 1}, ssl=who) as answer:
                return answer.status

        for method, path in (("GET", "/v1/process"), ("GET", "/metrics"), ("PUT", "/v1/rehearsal")):
            assert (await status(method, path, ana), await status(method, path, admin)) == (403, 200), path
        allowed = AclCreation(
            resource_type="CLUSTER",
            resource_name="kafka-cluster",
            principal="User:CN=ana",
            operation="DESCRIBE",
            permission_type="ALLOW",
        )
        assert (
            not (await cluster.client.access.create_acls(CreateAclsRequest(creations=[allowed]))).results[0].error_code
        )

        async def is_let_in() -> bool:
            return await status("GET", "/v1/process", ana) == 200

        await eventually(is_let_in, "the broker has read the ACL")
        assert await status("PUT", "/v1/rehearsal", ana) == 403
