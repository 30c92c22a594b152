"""The ways in which a SCRAM exchange goes wrong. None of them says anything about a key."""

from __future__ import annotations

from quorate.metadata_log.errors import QuorateError


class ScramError(QuorateError):
    """Base of them all."""


class ScramFailure(ScramError):
    """The exchange is over, without success: a message that is none, or somebody who is not who they say."""


class OtherAuthorizationId(ScramFailure):
    """A client that wants to act in another name than that it logs in with."""

    def __init__(self) -> None:
        super().__init__("the authorization id is not the name of the user")


class BadProofLength(ScramError):
    """A proof of another length than its mechanism's. As in Kafka the exchange goes on: the client may try again."""


class ExchangeOver(ScramError):
    """A message after success or failure."""
