"""The versions of the configs that outages depend on, out of successive images."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.metadata_log.records.config_texts import is_true
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.incidents.kinds import UNCLEAN_ALLOWED
from quorate.snapshots.incidents.min_isr import NAME as MIN_ISR
from quorate.snapshots.incidents.min_isr import ConfigSpan
from quorate.snapshots.incidents.reading.places import RecordPlace

#: Type and name of a resource.
_Resource = tuple[int, str]


class ConfigTrack:
    """The versions up to one record."""

    def __init__(self, cluster_id: str, start: MetadataImage, begin: RecordPlace) -> None:
        """``begin``: the last record that ``start`` holds."""
        #: Resources in which unclean elections were allowed at some time, by name.
        self.unclean_allowed: set[str] = set()
        self._cluster_id = cluster_id
        self._ended: list[ConfigSpan] = []
        self._open: dict[_Resource, ConfigSpan] = {}
        self._look(start, start.configs.resources, begin)

    def min_isr(self) -> list[ConfigSpan]:
        """Those of min.insync.replicas."""
        return [*self._ended, *self._open.values()]

    def take(self, before: MetadataImage, after: MetadataImage, place: RecordPlace) -> None:
        """Go on by what one record changed."""
        if after.configs.resources is not before.configs.resources:
            updated, removed = after.configs.resources.changes_since(before.configs.resources)
            self._look(after, (*updated, *removed), place)

    def _look(self, image: MetadataImage, resources: Iterable[_Resource], place: RecordPlace) -> None:
        for resource in resources:
            configs = image.configs.of(*resource)
            if is_true(configs.get(UNCLEAN_ALLOWED, "")):
                self.unclean_allowed.add(resource[1])
            value, known = configs.get(MIN_ISR), self._open.get(resource)
            if known is not None and known.value != value:
                self._ended.append(self._open.pop(resource)._replace(to_offset=place.offset, to_us=place.time_us))
            if value is not None and resource not in self._open:
                self._open[resource] = ConfigSpan(self._cluster_id, *resource, value, *place, None, None)
