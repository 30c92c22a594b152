"""The versions of brokers' registrations, out of successive images."""

from __future__ import annotations

from quorate.metadata_log.ids import uuid_text
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.incidents.brokers import BrokerVersion
from quorate.snapshots.incidents.reading.places import RecordPlace
from quorate.snapshots.table.cluster import BrokerRegistration


class BrokerTrack:
    """The versions up to one record."""

    def __init__(self, cluster_id: str, start: MetadataImage, begin: RecordPlace) -> None:
        """``begin``: the last record that ``start`` holds."""
        self._cluster_id = cluster_id
        self._ended: list[BrokerVersion] = []
        self._open = {broker.id: self._version(broker, begin) for broker in start.cluster.brokers.values()}

    def all(self) -> list[BrokerVersion]:
        """By the time at which they ended; then those that hold."""
        return [*self._ended, *self._open.values()]

    def take(self, before: MetadataImage, after: MetadataImage, place: RecordPlace) -> None:
        """Go on by what one record changed."""
        if after.cluster.brokers is before.cluster.brokers:
            return
        updated, removed = after.cluster.brokers.changes_since(before.cluster.brokers)
        for broker_id in (*updated, *removed):
            known = self._open.pop(broker_id, None)
            if known is not None:
                is_removed = broker_id in removed
                self._ended.append(known._replace(to_offset=place.offset, to_us=place.time_us, removed=is_removed))
        for broker_id in updated:
            self._open[broker_id] = self._version(after.cluster.brokers[broker_id], place)

    def _version(self, broker: BrokerRegistration, place: RecordPlace) -> BrokerVersion:
        return BrokerVersion(
            cluster_id=self._cluster_id,
            broker_id=broker.id,
            incarnation_id=uuid_text(broker.incarnation_id),
            rack=broker.rack,
            fenced=broker.is_fenced,
            in_controlled_shutdown=broker.in_controlled_shutdown,
            log_dirs=tuple(map(uuid_text, broker.directories)),
            from_offset=place.offset,
            from_us=place.time_us,
            to_offset=None,
            to_us=None,
            removed=False,
        )
