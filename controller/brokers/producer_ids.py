"""Producer ids, handed to brokers block by block (Kafka's ``ProducerIdControlManager``).

No id is given twice: the record moves the first free id on before the broker hears of its block. A request that is
repeated because its answer was lost costs a block, and the ids in it are never used.
"""

from __future__ import annotations

from typing import Final

from quorate.controller.decisions.decision import Decision
from quorate.controller.partitions.broker_epoch import check_broker_epoch
from quorate.controller.protocol.producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import ProducerIdsRecord, VersionedRecord
from quorate.snapshots.image.image import MetadataImage

#: Ids in a block (Kafka's ``ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE``).
BLOCK_SIZE: Final = 1_000
_ID_MAX: Final = 2**63 - 1


def decide_allocate_producer_ids(
    image: MetadataImage, request: AllocateProducerIdsRequest
) -> Decision[AllocateProducerIdsResponse]:
    """The next block; the first one begins at 0.

    Raises:
        ApiError: STALE_BROKER_EPOCH; UNKNOWN_SERVER_ERROR once all ids are used up.
    """
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    first = image.producer_ids.next_producer_id or 0
    if first > _ID_MAX - BLOCK_SIZE:
        message = (
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit: "
            f"the first free one is {first}"
        )
        raise ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message)
    record = ProducerIdsRecord(request.broker_id, request.broker_epoch, first + BLOCK_SIZE)
    reply = AllocateProducerIdsResponse(producer_id_start=first, producer_id_len=BLOCK_SIZE)
    return Decision([VersionedRecord(record, 0)], reply)
