"""Rules of an operator's own for new topics and changes of configs (Kafka's ``CreateTopicPolicy`` of KIP-108 and
``AlterConfigPolicy`` of KIP-133): what they are shown, and what their answer means.

A policy is asked where the decision is made, and nothing else is decided while it thinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from quorate.metadata_log.errors import ApiError, ErrorCode

#: Characters of a policy's reason that are passed on.
REASON_CHARS_MAX: Final = 1_000
#: What is said where a policy gives no reason; Kafka's sentence for the error.
_NO_REASON: Final = "Request parameters do not satisfy the configured policy."

_Shown = TypeVar("_Shown")


class PolicyViolation(ApiError):
    """The refusal of a policy, which raises it. Whoever asked is told the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(ErrorCode.POLICY_VIOLATION, reason)


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic that is to be created. Either the two numbers are given or the replicas, as in Kafka."""

    name: str
    #: With the defaults of the cluster filled in; None where the request assigns the replicas itself.
    num_partitions: int | None
    replication_factor: int | None
    #: Brokers of each partition, the preferred leader first; None where the controller places them.
    replicas: Mapping[int, Sequence[int]] | None
    #: Those of the request: nothing that is inherited.
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ChangedConfigs:
    """The changes to be made to one resource's configs; also those that a topic is created with."""

    #: TOPIC, BROKER, GROUP or CLIENT_METRICS.
    resource_type: str
    #: "" of a BROKER: the default of all brokers.
    resource_name: str
    #: New values, None where a config is removed. What a full replacement removes by leaving it out is not among them,
    #: as in Kafka, and neither is what stays as it is, but for brokers.
    configs: Mapping[str, str | None]


class CreateTopicPolicy(Protocol):
    """Decides whether a topic may be created."""

    def validate(self, topic: NewTopic) -> None:
        """Return nothing, or refuse.

        Raises:
            PolicyViolation: it may not.
        """


class AlterConfigPolicy(Protocol):
    """Decides whether configs may be changed."""

    def validate(self, change: ChangedConfigs) -> None:
        """Return nothing, or refuse.

        Raises:
            PolicyViolation: they may not.
        """


@dataclass(frozen=True, slots=True)
class Policies:
    """Those of one controller; None: everything may be done."""

    create_topic: CreateTopicPolicy | None = None
    alter_config: AlterConfigPolicy | None = None
    #: Hears of what a policy raised that was no refusal, with the policy's name.
    on_failure: Callable[[str, Exception], None] = field(default=lambda name, error: None, compare=False)

    def check_topic(self, make: Callable[[], NewTopic]) -> None:
        """Ask about a topic, which is made to be shown where somebody looks.

        Raises:
            ApiError: POLICY_VIOLATION; UNKNOWN_SERVER_ERROR, the policy failed.
        """
        if self.create_topic is not None:
            self._ask(self.create_topic.validate, make(), "create_topic")

    def check_configs(self, make: Callable[[], ChangedConfigs]) -> None:
        """Ask about a change of configs; as ``check_topic``."""
        if self.alter_config is not None:
            self._ask(self.alter_config.validate, make(), "alter_config")

    def _ask(self, validate: Callable[[_Shown], None], shown: _Shown, name: str) -> None:
        """As Kafka: an error with a code is passed on with it, any other is reported and not shown. Neither ends
        anything but what was asked for: other topics and resources of the request go on."""
        try:
            answer: object = validate(shown)  # type: ignore[func-returns-value]  # it is somebody else's
            if answer is not None:
                # False, or a coroutine that nobody runs: whoever wrote that meant to refuse.
                raise TypeError(f"validate returned {answer!r:.80}: a policy refuses by raising PolicyViolation")
        except ApiError as refusal:
            if refusal.code is not ErrorCode.NONE:
                raise ApiError(refusal.code, _shortened(refusal.message)) from refusal
            raise self._failed(name, refusal) from refusal
        except Exception as error:
            raise self._failed(name, error) from error

    def _failed(self, name: str, error: Exception) -> ApiError:
        self.on_failure(name, error)
        message = f"the policy {name} failed and nothing was changed: the log of the active controller says how"
        return ApiError(ErrorCode.UNKNOWN_SERVER_ERROR, message)


def _shortened(reason: str) -> str:
    if len(reason) > REASON_CHARS_MAX:
        return f"{reason[:REASON_CHARS_MAX]}…"
    return reason or _NO_REASON
