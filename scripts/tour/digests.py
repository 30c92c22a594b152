"""Do all nodes have the same state? Asked at one offset, for states at different ones need not be equal."""

from __future__ import annotations

from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.metadata_log.errors import ApiError
from quorate.scripts.cluster.watched import WatchedCluster


async def digests_at_one_offset(cluster: WatchedCluster, deadline_s: float) -> tuple[int, dict[str, str]]:
    """An offset that every process has reached whose address is known, and each one's digest there, by name.

    Raises:
        ClusterError: there was no such offset within the deadline.
    """
    urls = {f"{node.kind} {node.id}": node.url for node in cluster.members.nodes if node.url is not None}

    async def look() -> tuple[int, dict[str, str]] | None:
        offset = (await cluster.status()).quorum.applied_offset
        try:
            return offset, {name: await cluster.client.digest_of(url, offset) for name, url in urls.items()}
        except (ApiError, NotSent, NoAnswer):
            return None  # a node that is not there yet; the next look takes a newer offset

    return await cluster.until(look, "all nodes reach one offset", deadline_s)
