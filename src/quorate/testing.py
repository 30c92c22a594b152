"""For the tests of programs that use Quorate: a quorum of their own, inside the test's process and event loop.

``cluster`` gives controllers as they run in production, over files in a temporary directory and loopback sockets::

    async with quorate.testing.cluster(controllers=1) as cluster, cluster.client() as client:
        await client.create_topics(...)

See docs/library.md.
"""

from quorate.controller.process.settings_source import InvalidSettings
from quorate.scripts.embedded.cluster import EmbeddedCluster, InvalidCluster, WrongState, cluster
from quorate.scripts.embedded.faults import ControllerFault

__all__ = ["ControllerFault", "EmbeddedCluster", "InvalidCluster", "InvalidSettings", "WrongState", "cluster"]
