"""One image being changed: an editor for every part, made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from quorate.metadata_log.ids import Uuid
from quorate.metadata_log.records.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    UserScramCredentialRecord,
)
from quorate.snapshots.counts.tally import own_min_isr_code
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import (
    MIN_INSYNC_REPLICAS,
    TOPIC_RESOURCE,
    AclsImage,
    ClientQuotasImage,
    ConfigsImage,
    DelegationTokensImage,
    Provenance,
    QuotaEntity,
    ScramImage,
    Topic,
    TopicsImage,
)
from quorate.snapshots.image.labels import LabelsImage
from quorate.snapshots.maps.nested_map import NestedMapEditor
from quorate.snapshots.maps.persistent_map import MapEditor
from quorate.snapshots.table.cluster import BrokerRegistration, ClusterImage, ControllerRegistration
from quorate.snapshots.table.table_editor import TableEditor

E = TypeVar("E")


class _LazyPart(Generic[E]):
    """An attribute that is made of the image when it is first asked for.

    ``functools.cached_property`` without its lock: an editor belongs to one thread, and one is made for every batch.
    """

    def __init__(self, make: Callable[[MetadataImage], E]) -> None:
        self._make = make

    def __set_name__(self, _: type, name: str) -> None:
        self._name = name

    def __get__(self, editor: ImageEditor, _: type) -> E:
        made = editor.__dict__[self._name] = self._make(editor._image)
        return made


class ImageEditor:
    """Changes to one image. Parts that are never asked for stay the same objects."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self.features = image.features
        self.kraft = image.kraft
        self.producer_ids = image.producer_ids

    #: Brokers by id.
    brokers: _LazyPart[MapEditor[int, BrokerRegistration]] = _LazyPart(lambda image: MapEditor(image.cluster.brokers))
    #: Controllers by id.
    controllers: _LazyPart[MapEditor[int, ControllerRegistration]] = _LazyPart(
        lambda image: MapEditor(image.cluster.controllers)
    )
    #: Topics by id.
    topics_by_id: _LazyPart[MapEditor[Uuid, Topic]] = _LazyPart(lambda image: MapEditor(image.topics.by_id))
    #: Topics by name.
    topics_by_name: _LazyPart[MapEditor[str, Topic]] = _LazyPart(lambda image: MapEditor(image.topics.by_name))
    #: Partitions of all topics.
    partitions: _LazyPart[TableEditor] = _LazyPart(lambda image: TableEditor(image.partitions))
    #: Configs by resource.
    configs: _LazyPart[NestedMapEditor[tuple[int, str], str, str]] = _LazyPart(
        lambda image: NestedMapEditor(image.configs.resources)
    )
    #: Labels by resource.
    labels: _LazyPart[NestedMapEditor[str, str, str]] = _LazyPart(lambda image: NestedMapEditor(image.labels.resources))
    #: Quotas by entity.
    quotas: _LazyPart[NestedMapEditor[QuotaEntity, str, float]] = _LazyPart(
        lambda image: NestedMapEditor(image.client_quotas.entities)
    )
    #: ACL entries by id.
    acls: _LazyPart[MapEditor[Uuid, AccessControlEntryRecord]] = _LazyPart(lambda image: MapEditor(image.acls.entries))
    #: SCRAM credentials by user and mechanism.
    scram: _LazyPart[MapEditor[tuple[str, int], UserScramCredentialRecord]] = _LazyPart(
        lambda image: MapEditor(image.scram.credentials)
    )
    #: Delegation tokens by id.
    tokens: _LazyPart[MapEditor[str, DelegationTokenRecord]] = _LazyPart(
        lambda image: MapEditor(image.delegation_tokens.tokens)
    )

    def count_by_min_isr(self, topic: Topic) -> None:
        """Count a topic's partitions by the ``min.insync.replicas`` that it has of its own now, if it has one."""
        text = self.configs.get((TOPIC_RESOURCE, topic.name), MIN_INSYNC_REPLICAS)
        self.partitions.set_min_isr(topic.id, own_min_isr_code(text))

    def finish(self, provenance: Provenance) -> MetadataImage:
        """The image with all changes."""
        image, edited = self._image, self.__dict__
        cluster, topics = image.cluster, image.topics
        if "brokers" in edited or "controllers" in edited:
            cluster = ClusterImage(self.brokers.finish(), self.controllers.finish())
        if "topics_by_id" in edited:
            by_id = self.topics_by_id.finish()
            topics = topics if by_id is topics.by_id else TopicsImage(by_id, self.topics_by_name.finish())
        return MetadataImage(
            provenance,
            self.features,
            self.kraft,
            cluster,
            topics,
            self.partitions.finish() if "partitions" in edited else image.partitions,
            ConfigsImage(self.configs.finish()) if "configs" in edited else image.configs,
            self._labels() if "labels" in edited else image.labels,
            ClientQuotasImage(self.quotas.finish()) if "quotas" in edited else image.client_quotas,
            self.producer_ids,
            AclsImage(self.acls.finish()) if "acls" in edited else image.acls,
            ScramImage(self.scram.finish()) if "scram" in edited else image.scram,
            DelegationTokensImage(self.tokens.finish()) if "tokens" in edited else image.delegation_tokens,
        )

    def _labels(self) -> LabelsImage:
        count = self._image.labels.count + self.labels.growth
        return LabelsImage(self.labels.finish(), count)
