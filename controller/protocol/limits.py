"""The checks by which operations on lists refuse a list as a whole."""

from __future__ import annotations

from quorate.metadata_log.errors import ErrorCode, LimitExceeded
from quorate.metadata_log.limits import RECORDS_PER_OPERATION_MAX


def check_record_count(count: int) -> None:
    """Refuse an operation that would write too much.

    Raises:
        LimitExceeded: POLICY_VIOLATION, with Kafka's sentence for it, how much it is, and the most.
    """
    if count > RECORDS_PER_OPERATION_MAX:
        problem = (
            f"Unable to perform excessively large batch operation: it would write {count} records, "
            f"and {RECORDS_PER_OPERATION_MAX} is the most."
        )
        raise LimitExceeded(problem, ErrorCode.POLICY_VIOLATION)
