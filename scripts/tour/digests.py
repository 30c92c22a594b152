"""Do all nodes have the same state? Asked at one offset, for states at different ones need not be equal."""

from __future__ import annotations

from controller.connection import NoAnswer, NotSent
from metadata_log.errors import ApiError
from scripts.cluster.local import LocalCluster


async def digests_at_one_offset(cluster: LocalCluster, deadline_s: float) -> tuple[int, dict[str, str]]:
    """An offset that every controller and broker process has reached, and each one's digest there, by name.

    Raises:
        ClusterError: there was no such offset within the deadline.
    """
    urls = {f"controller {c.id}": f"http://127.0.0.1:{c.http_port}" for c in cluster.plan.controllers}
    urls |= {f"broker {b.ids[0]}": f"http://127.0.0.1:{b.http_port}" for b in cluster.plan.brokers}

    async def look() -> tuple[int, dict[str, str]] | None:
        offset = (await cluster.status()).quorum.applied_offset
        try:
            return offset, {name: await cluster.client.digest_of(url, offset) for name, url in urls.items()}
        except (ApiError, NotSent, NoAnswer):
            return None  # a node that is not there yet; the next look takes a newer offset

    return await cluster.until(look, "all nodes reach one offset", deadline_s)
