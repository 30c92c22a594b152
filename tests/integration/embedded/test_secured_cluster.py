"""A quorum in the test's process with certificates: whoever shows none is nobody, and brokers act by theirs."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate import testing
from quorate.client import ControllerClient, TlsFiles, TlsPaths
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.watch import watch
from quorate.worker import BrokerTlsSettings
from tests.integration.broker_stage import playing
from tests.integration.embedded.changes import CHANGE


async def is_refused(urls: tuple[str, ...], paths: TlsPaths) -> ErrorCode:
    """The code with which whoever has these files is told nothing of the quorum."""
    async with ControllerClient(urls, tls=TlsFiles(paths).as_client) as client:
        with pytest.raises(ApiError) as error:
            await client.describe_quorum()
        return error.value.code


async def test_cluster_with_certificates_lets_in_whom_it_knows_by_them() -> None:
    async with testing.cluster(tls=True) as cluster, cluster.client() as admin:
        ana, own = cluster.client_certificate("ana"), cluster.broker_certificate(1)
        assert (await admin.incremental_alter_configs(CHANGE)).responses[0].error_code == 0
        assert await is_refused(cluster.urls, ana) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert await is_refused(cluster.urls, TlsPaths(ca_files=ana.ca_files)) == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        tls = BrokerTlsSettings(cert_file=own.cert_file, key_file=own.key_file, ca_files=tuple(own.ca_files))
        async with (
            playing([1], cluster.urls, tls=tls) as played,
            watch(cluster.urls, tls=TlsFiles(own).as_client) as watcher,
        ):
            await played.ready()
            await watcher.wait_for(lambda image: 1 in image.cluster.brokers, timeout_ms=10_000)
        assert cluster.client_certificate("ana") == ana, "it is issued once"


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda cluster: cluster.client_certificate("../ca"), "is no name for a client"),
        (lambda cluster: cluster.broker_certificate(), "of which brokers"),
    ],
)
async def test_certificate_of_nobody_is_refused(ask: Callable[[testing.EmbeddedCluster], object], says: str) -> None:
    async with testing.cluster(tls=True) as cluster:
        with pytest.raises(testing.InvalidCluster, match=says):
            ask(cluster)


async def test_cluster_without_certificates_has_none_to_give() -> None:
    async with testing.cluster() as cluster:
        assert cluster.tls is None
        with pytest.raises(testing.InvalidCluster, match="make it with tls=True"):
            cluster.client_certificate("ana")
