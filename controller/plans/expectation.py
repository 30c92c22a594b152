"""The condition of a change that is made by a plan: it is decided only while all that it goes by is as it was."""

from __future__ import annotations

import re
from typing import Final

from quorate.controller.api.answers.plan_models import PlannedChange, digest_of_facts
from quorate.controller.decisions.precondition import Precondition
from quorate.controller.plans.facts import facts_of
from quorate.metadata_log.errors import ApiError, ErrorCode
from quorate.snapshots.image.image import MetadataImage

_FORM: Final = re.compile(r"[0-9a-f]{64}")


def expecting(change: PlannedChange, digest: str) -> Precondition:
    """The condition that a change goes by the facts of this digest, at the moment when it is decided.

    Raises:
        ApiError: INVALID_REQUEST, ``digest`` is none. The condition raises INVALID_UPDATE_VERSION where it does not
            hold, and what ``facts_of`` raises.
    """
    if not _FORM.fullmatch(digest):
        message = f"a digest of facts is 64 hexadecimal digits, not {digest[:80]!r}"
        raise ApiError(ErrorCode.INVALID_REQUEST, message)

    def check(image: MetadataImage) -> None:
        if digest_of_facts(facts_of(image, change)) != digest:
            message = "What the change was planned on is no longer so: nothing was changed; plan it again."
            raise ApiError(ErrorCode.INVALID_UPDATE_VERSION, message)

    return check
