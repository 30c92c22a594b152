"""The rights that reading the log of a running cluster takes: whoever lacks one is told of both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Final

from quorate.broker.controllers.feed import FeedForbidden
from quorate.controller.api.errors import status_of
from quorate.controller.permissions.rights import NODE_OPERATION
from quorate.metadata_log.errors import ApiError

_RULE: Final = "it takes both DESCRIBE and CLUSTER_ACTION on the cluster to read its log"


@contextmanager
def naming_all_rights() -> Iterator[None]:
    """A block in which a running cluster is asked who it is and for its log, which are two rights.

    Raises:
        ApiError, FeedForbidden: those of the block, with both rights where one is missing.
    """
    try:
        yield
    except ApiError as error:
        if status_of(error) != HTTPStatus.FORBIDDEN:
            raise
        raise ApiError(error.code, f"{error.message.rstrip('.')}; {_RULE}") from None
    except FeedForbidden as error:
        if NODE_OPERATION not in str(error):
            raise  # nobody knows who asks
        raise FeedForbidden(f"{str(error).rstrip('.')}; {_RULE}") from None
