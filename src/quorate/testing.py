"""For the tests of programs that use Quorate: a quorum inside the test's own process, and a test of publishers.

``cluster`` gives controllers as they run in production, over files in a temporary directory and loopback sockets::

    async with quorate.testing.cluster(controllers=1) as cluster, cluster.client() as client:
        await client.create_topics(...)

``check_publisher`` tells a publisher histories in every way in which a cluster may tell them, and compares what it has.

See docs/library.md and docs/publishers.md.
"""

from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_files import TlsPaths
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.scripts.embedded.cluster import EmbeddedCluster, InvalidCluster, WrongState, cluster
from quorate.scripts.embedded.faults import ControllerFault
from quorate.scripts.publisher_kit.check import check_publisher
from quorate.scripts.publisher_kit.deliveries import PublisherDiffers
from quorate.scripts.publisher_kit.made_histories import HISTORY_BROKERS

__all__ = [
    "HISTORY_BROKERS",
    "ControllerFault",
    "EmbeddedCluster",
    "InvalidCluster",
    "InvalidSettings",
    "PublisherDiffers",
    "TlsContexts",
    "TlsPaths",
    "WrongState",
    "check_publisher",
    "cluster",
]
