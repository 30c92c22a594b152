"""One image being changed: an editor for every part, made when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from metadata_log.ids import Uuid
from metadata_log.records import AccessControlEntryRecord, DelegationTokenRecord, UserScramCredentialRecord
from snapshots.cluster import BrokerRegistration, ClusterImage, ControllerRegistration
from snapshots.image import MetadataImage
from snapshots.image_parts import (
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
from snapshots.persistent_map import MapEditor
from snapshots.table_editor import TableEditor


class ImageEditor:
    """Changes to one image. Parts that are never asked for stay the same objects."""

    def __init__(self, image: MetadataImage) -> None:
        self._image = image
        self.features = image.features
        self.kraft = image.kraft
        self.producer_ids = image.producer_ids

    @cached_property
    def brokers(self) -> MapEditor[int, BrokerRegistration]:
        """Brokers by id."""
        return MapEditor(self._image.cluster.brokers)

    @cached_property
    def controllers(self) -> MapEditor[int, ControllerRegistration]:
        """Controllers by id."""
        return MapEditor(self._image.cluster.controllers)

    @cached_property
    def topics_by_id(self) -> MapEditor[Uuid, Topic]:
        """Topics by id."""
        return MapEditor(self._image.topics.by_id)

    @cached_property
    def topics_by_name(self) -> MapEditor[str, Topic]:
        """Topics by name."""
        return MapEditor(self._image.topics.by_name)

    @cached_property
    def partitions(self) -> TableEditor:
        """Partitions of all topics."""
        return TableEditor(self._image.partitions)

    @cached_property
    def configs(self) -> MapEditor[tuple[int, str], Mapping[str, str]]:
        """Configs by resource; the mappings are read-only."""
        return MapEditor(self._image.configs.resources)

    @cached_property
    def quotas(self) -> MapEditor[QuotaEntity, Mapping[str, float]]:
        """Quotas by entity; the mappings are read-only."""
        return MapEditor(self._image.client_quotas.entities)

    @cached_property
    def acls(self) -> MapEditor[Uuid, AccessControlEntryRecord]:
        """ACL entries by id."""
        return MapEditor(self._image.acls.entries)

    @cached_property
    def scram(self) -> MapEditor[tuple[str, int], UserScramCredentialRecord]:
        """SCRAM credentials by user and mechanism."""
        return MapEditor(self._image.scram.credentials)

    @cached_property
    def tokens(self) -> MapEditor[str, DelegationTokenRecord]:
        """Delegation tokens by id."""
        return MapEditor(self._image.delegation_tokens.tokens)

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
            provenance=provenance,
            features=self.features,
            kraft=self.kraft,
            cluster=cluster,
            topics=topics,
            partitions=self.partitions.finish() if "partitions" in edited else image.partitions,
            configs=ConfigsImage(self.configs.finish()) if "configs" in edited else image.configs,
            client_quotas=ClientQuotasImage(self.quotas.finish()) if "quotas" in edited else image.client_quotas,
            producer_ids=self.producer_ids,
            acls=AclsImage(self.acls.finish()) if "acls" in edited else image.acls,
            scram=ScramImage(self.scram.finish()) if "scram" in edited else image.scram,
            delegation_tokens=(
                DelegationTokensImage(self.tokens.finish()) if "tokens" in edited else image.delegation_tokens
            ),
        )
