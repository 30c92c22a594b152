"""SCRAM credentials of users: changes and description (Kafka's ``ScramControlManager`` and ``ScramImage``).

Of a credential its mechanism and its number of iterations are told, and nothing else, to nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

from quorate.controller.decisions.decision import Decision
from quorate.controller.decisions.metadata_version import SCRAM_LEVEL
from quorate.controller.protocol.limits import check_record_count
from quorate.controller.protocol.scram import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialInfo,
    ScramCredentialUpsertion,
)
from quorate.controller.scram.keys import ITERATIONS_MAX, ITERATIONS_MIN, scram_keys
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.metadata_log.records.records import (
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    VersionedRecord,
)
from quorate.snapshots.image.image import MetadataImage
from quorate.snapshots.views.kafka_names import SCRAM_MECHANISMS

_MECHANISM_IDS: Final[Mapping[str, int]] = {name: number for number, name in SCRAM_MECHANISMS.items()}


def decide_alter_user_scram_credentials(
    image: MetadataImage, request: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    """Remove, make and replace credentials, each user with its own outcome.

    Raises:
        LimitExceeded: POLICY_VIOLATION, more records than one operation may write.
    """
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    check_record_count(len(changes))
    counts = Counter(change.name for change in changes)
    records: list[VersionedRecord] = []
    failures: dict[str, ApiError] = {}
    for change in changes:
        try:
            if image.features.metadata_version < SCRAM_LEVEL:
                message = "The current metadata.version does not support SCRAM"
                raise ApiError(ErrorCode.UNSUPPORTED_VERSION, message)
            record = _deletion(image, change) if isinstance(change, ScramCredentialDeletion) else _upsertion(change)
            if counts[change.name] > 1:
                message = "A user credential cannot be altered twice in the same request"
                raise ApiError(ErrorCode.DUPLICATE_RESOURCE, message)
            records.append(VersionedRecord(record, 0))
        except ApiError as error:
            failures.setdefault(change.name, error)
    return Decision(
        records, AlterUserScramCredentialsResponse(results=[_altered(name, failures.get(name)) for name in counts])
    )


def _altered(user: str, failure: ApiError | None) -> AlterUserScramCredentialsResult:
    if failure is None:
        return AlterUserScramCredentialsResult(user=user)
    return AlterUserScramCredentialsResult(error_code=failure.code, error_message=failure.message, user=user)


def _deletion(image: MetadataImage, change: ScramCredentialDeletion) -> RemoveUserScramCredentialRecord:
    mechanism = _mechanism_id(change.name, change.mechanism)
    if (change.name, mechanism) not in image.scram.credentials:
        message = "Attempt to delete a user credential that does not exist"
        raise ApiError(ErrorCode.RESOURCE_NOT_FOUND, message)
    return RemoveUserScramCredentialRecord(change.name, mechanism)


def _upsertion(change: ScramCredentialUpsertion) -> UserScramCredentialRecord:
    mechanism = _mechanism_id(change.name, change.mechanism)
    if change.iterations < ITERATIONS_MIN:
        raise _unacceptable("Too few iterations")
    if change.iterations > ITERATIONS_MAX:
        raise _unacceptable("Too many iterations")
    if not change.salted_password:
        raise _unacceptable("Empty salted password")
    keys = scram_keys(change.mechanism, change.salted_password)
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=mechanism,
        salt=change.salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=change.iterations,
    )


def _mechanism_id(user: str, mechanism: str) -> int:
    if not user:
        raise _unacceptable("Username must not be empty")
    if mechanism not in _MECHANISM_IDS:
        raise ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return _MECHANISM_IDS[mechanism]


def _unacceptable(message: str) -> ApiError:
    return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, message)


def describe_user_scram_credentials(
    image: MetadataImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Describe users, each with its own outcome."""
    counts = Counter(request.users or _everybody(image))
    return DescribeUserScramCredentialsResponse(results=[_described(image, user, counts[user]) for user in counts])


def _everybody(image: MetadataImage) -> list[str]:
    return sorted({user for user, mechanism in image.scram.credentials if mechanism in SCRAM_MECHANISMS})


def _described(image: MetadataImage, user: str, count: int) -> DescribeUserScramCredentialsResult:
    infos = [
        ScramCredentialInfo(mechanism=name, iterations=credential.iterations)
        for mechanism, name in SCRAM_MECHANISMS.items()
        if (credential := image.scram.credentials.get((user, mechanism))) is not None
    ]
    if count > 1:
        message = f"Cannot describe SCRAM credentials for the same user twice in a single request: {user}"
        code = ErrorCode.DUPLICATE_RESOURCE
    elif not infos:
        message = f"Attempt to describe a user credential that does not exist: {user}"
        code = ErrorCode.RESOURCE_NOT_FOUND
    else:
        return DescribeUserScramCredentialsResult(user=user, credential_infos=infos)
    return DescribeUserScramCredentialsResult(error_code=code, error_message=message, user=user)
