"""A spectator of a cluster, which registers nothing: the newest state, and word of every change of it.

``watch`` is the brokers' way to follow the metadata, without a broker::

    async with watch(["10.0.0.1:18081", "10.0.0.2:18081"]) as watcher:
        await watcher.wait_for(lambda image: "orders" in image.topics.by_name, timeout_ms=10_000)

See docs/library.md.
"""

from quorate.broker.watcher import CATCH_UP_MS, SILENCE_MAX_MS, WatchEnded, Watcher, WatchRefused, WatchTimeout, watch

__all__ = ["CATCH_UP_MS", "SILENCE_MAX_MS", "WatchEnded", "WatchRefused", "WatchTimeout", "Watcher", "watch"]
