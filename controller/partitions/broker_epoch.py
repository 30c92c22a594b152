"""Checks that a broker speaks by its newest registration, as most requests of brokers must."""

from __future__ import annotations

from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.table.cluster import BrokerRegistration


def check_broker_epoch(image: MetadataImage, broker_id: int, broker_epoch: int) -> BrokerRegistration:
    """The broker's registration.

    Raises:
        ApiError: STALE_BROKER_EPOCH if there is none, or it has another epoch.
    """
    broker = image.cluster.brokers.get(broker_id)
    if broker is None:
        message = f"No broker registration found for broker id {broker_id}"
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, message)
    if broker.epoch != broker_epoch:
        message = f"Expected broker epoch {broker.epoch}, but got broker epoch {broker_epoch}"
        raise ApiError(ErrorCode.STALE_BROKER_EPOCH, message)
    return broker
