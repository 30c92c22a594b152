"""Client quotas: changes and description (Kafka's ``ClientQuotaControlManager`` and ``ClientQuotasImage``).

A quota belongs to an entity: a user, a client id, the two together, or an address. Changes of one entity take effect
together or not at all; other entities of the request go on.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from quorate.controller.decisions.decision import Decision
from quorate.controller.protocol.limits import check_record_count
from quorate.controller.protocol.quotas import (
    AlterClientQuotasEntry,
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    AlterClientQuotasResult,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    DescribedClientQuotas,
    QuotaEntityPart,
    QuotaFilterComponent,
    QuotaValue,
)
from quorate.controller.quotas.entities import CLIENT_ID, CONNECTION_RATE, IP, MUTATION_RATE, USER
from quorate.metadata_log.errors import ApiError, ErrorCode, LimitExceeded
from quorate.metadata_log.records.records import ClientQuotaRecord, EntityData, VersionedRecord
from quorate.snapshots.checkpoints.hash_map_order import in_hash_map_order
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.image.image_parts import QuotaEntity

#: Hosts that are not addresses, in one request: each must be asked of the name service.
HOST_NAMES_MAX: Final = 10

# The largest value of each quota as Java compares it; None: any value, also one with a fraction.
_INT_MAX: Final = float(2**31 - 1)
_LONG_MAX: Final = float(2**63)
_CLIENT_KEYS: Final[Mapping[str, float | None]] = {
    "producer_byte_rate": _LONG_MAX,
    "consumer_byte_rate": _LONG_MAX,
    "request_percentage": None,
    MUTATION_RATE: None,
}
_IP_KEYS: Final[Mapping[str, float | None]] = {CONNECTION_RATE: _INT_MAX}
_TYPE_NAMES: Final = {_INT_MAX: "an INT", _LONG_MAX: "a LONG"}
_FRACTION_MAX: Final = 1e-6


# --- changes -----------------------------------------------------------------------------------------


def host_names(request: AlterClientQuotasRequest) -> frozenset[str]:
    """Names of ip entities that are no addresses: whether they are hosts only a name service can say.

    Raises:
        LimitExceeded: there are too many of them.
    """
    ips = {part.entity_name for entry in request.entries for part in entry.entity if part.entity_type == IP}
    names = frozenset(name for name in ips if name and not _is_address(name))
    if len(names) > HOST_NAMES_MAX:
        raise LimitExceeded(f"{len(names)} ip entities are no addresses; at most {HOST_NAMES_MAX} may be host names.")
    return names


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def decide_alter_client_quotas(
    image: MetadataImage, request: AlterClientQuotasRequest, resolvable: Collection[str]
) -> Decision[AlterClientQuotasResponse]:
    """Set and remove quotas, each entity with its own outcome.

    Args:
        resolvable: those of ``host_names`` that are hosts.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write.
    """
    seen: set[QuotaEntity] = set()
    records: list[VersionedRecord] = []
    results: list[AlterClientQuotasResult] = []
    for entry in request.entries:
        code, message = ErrorCode.NONE, None
        try:
            entity = _entity(entry)
            if entity in seen:
                raise _invalid(f"Ignoring duplicate entity {_entity_text(entity)}")
            seen.add(entity)
            keys = _keys_of(entity, resolvable)
            records += (VersionedRecord(record, 0) for record in _records(image, entity, keys, entry))
        except ApiError as error:
            code, message = error.code, error.message
        results.append(AlterClientQuotasResult(error_code=code, error_message=message, entity=entry.entity))
    check_record_count(len(records))
    return Decision(() if request.validate_only else records, AlterClientQuotasResponse(entries=results))


def _entity(entry: AlterClientQuotasEntry) -> QuotaEntity:
    """The entity as the image has it: its parts by type."""
    parts: dict[str, EntityData] = {}
    for part in entry.entity:
        if part.entity_type in parts:
            raise _invalid(f"Invalid client quota entity, duplicate entity entry {part.entity_type}")
        if part.entity_type not in (USER, CLIENT_ID, IP):
            raise _invalid(f"Unhandled client quota entity type: {part.entity_type}")
        if part.entity_name == "":
            raise _invalid(f"Empty {part.entity_type} not supported")
        parts[part.entity_type] = EntityData(part.entity_type, part.entity_name)
    if not parts:
        raise _invalid("Invalid empty client quota entity")
    return tuple(parts[type_] for type_ in sorted(parts))


def _keys_of(entity: QuotaEntity, resolvable: Collection[str]) -> Mapping[str, float | None]:
    """The quotas that an entity can have, with their largest values."""
    names = {part.entity_type: part.entity_name for part in entity}
    if IP not in names:
        return _CLIENT_KEYS
    if len(names) > 1:
        raise _invalid("Invalid quota entity combination, IP entity should not be combined with User or ClientId")
    name = names[IP]
    if name is not None and not _is_address(name) and name not in resolvable:
        raise _invalid(f"{name} is not a valid IP or resolvable host.")
    return _IP_KEYS


def _records(
    image: MetadataImage, entity: QuotaEntity, keys: Mapping[str, float | None], entry: AlterClientQuotasEntry
) -> list[ClientQuotaRecord]:
    """The changes as records; a value that is so already is not written."""
    if len({op.key for op in entry.ops}) != len(entry.ops):
        raise _invalid(f"Duplicate quota key, not updating quota for this entity {_entity_text(entity)}")
    present: Mapping[str, float] = image.client_quotas.entities.get(entity) or {}
    # In the order in which Kafka writes the parts.
    parts = in_hash_map_order(entity, lambda part: part.entity_type)
    records = []
    for op in entry.ops:
        if op.remove:
            if op.key in present:
                records.append(ClientQuotaRecord(parts, op.key, remove=True))
            continue
        _check_value(keys, op.key, op.value)
        if present.get(op.key) != op.value:
            records.append(ClientQuotaRecord(parts, op.key, op.value))
    return records


def _check_value(keys: Mapping[str, float | None], key: str, value: float) -> None:
    if key not in keys:
        raise _invalid(f"Invalid configuration key {key}")
    if value <= 0:
        raise _invalid(f"Quota {key} must be greater than 0, and {value:.15g} is not")
    largest = keys[key]
    if largest is None:
        return
    if value > largest:
        raise _invalid(f"Proposed value {value:.15g} for {key} is too large for {_TYPE_NAMES[largest]}.")
    if value % 1.0 > _FRACTION_MAX:
        raise _invalid(f"{key} is {value:.15g}, and cannot be a fractional value.")


def _entity_text(entity: QuotaEntity) -> str:
    names = (f"{part.entity_type}={'<default>' if part.entity_name is None else part.entity_name}" for part in entity)
    return ", ".join(names)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


# --- description -------------------------------------------------------------------------------------


def describe_client_quotas(image: MetadataImage, request: DescribeClientQuotasRequest) -> DescribeClientQuotasResponse:
    """The quotas of the entities that a filter asks for, by entity.

    Raises:
        ApiError: INVALID_REQUEST, UNSUPPORTED_VERSION (an unknown type): a filter that cannot be.
    """
    wanted = _wanted(request.components)
    found = [
        (entity, values)
        for entity, values in image.client_quotas.entities.items()
        if _matches(entity, wanted, is_strict=request.strict)
    ]
    return DescribeClientQuotasResponse(
        entries=[
            DescribedClientQuotas(
                entity=[QuotaEntityPart(entity_type=p.entity_type, entity_name=p.entity_name) for p in entity],
                values=[QuotaValue(key=key, value=value) for key, value in sorted(values.items())],
            )
            for entity, values in sorted(found, key=lambda item: list(_order(item[0])))
        ]
    )


def _wanted(components: Collection[QuotaFilterComponent]) -> dict[str, QuotaFilterComponent]:
    wanted: dict[str, QuotaFilterComponent] = {}
    for component in components:
        type_, match_type = component.entity_type, component.match_type
        if not type_:
            raise _invalid("Invalid empty entity type.")
        if type_ in wanted:
            raise _invalid(f"Entity type {type_} cannot appear more than once in the filter.")
        if type_ not in (USER, CLIENT_ID, IP):
            raise ApiError(ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {type_}")
        if match_type == "EXACT" and component.match is None:
            raise _invalid("The filter asks for an EXACT match, and gives no name to match.")
        if match_type != "EXACT" and component.match is not None:
            raise _invalid(f"The filter asks for {match_type}, and also gives a name to match.")
        wanted[type_] = component
    if IP in wanted and len(wanted) > 1:
        raise _invalid(
            "Invalid entity filter component combination. IP filter component should not be used with user or "
            "clientId filter component."
        )
    return wanted


def _matches(entity: QuotaEntity, wanted: Mapping[str, QuotaFilterComponent], *, is_strict: bool) -> bool:
    if is_strict and len(entity) != len(wanted):
        return False
    names = {part.entity_type: part.entity_name for part in entity}
    for type_, component in wanted.items():
        if type_ not in names:
            return False
        if component.match_type != "ANY" and names[type_] != component.match:
            return False
    return True


def _order(entity: QuotaEntity) -> Iterator[tuple[str, bool, str]]:
    """By type and name, a default before all names."""
    for part in entity:
        yield part.entity_type, part.entity_name is not None, part.entity_name or ""
