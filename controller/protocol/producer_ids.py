"""Blocks of producer ids (Kafka's API 67, AllocateProducerIds)."""

from __future__ import annotations

from quorate.controller.protocol.types import BrokerIdField, Int32, Int64, Message


class AllocateProducerIdsRequest(Message):
    """A broker wants ids that no other producer has or will have."""

    broker_id: BrokerIdField
    broker_epoch: Int64


class AllocateProducerIdsResponse(Message):
    """The ids from ``producer_id_start`` on, ``producer_id_len`` of them, are this broker's to hand out."""

    producer_id_start: Int64
    producer_id_len: Int32
