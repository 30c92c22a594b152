"""The permission that each route of a broker process asks for: see ``controller.permissions.permission``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quorate.broker.replicas.peers import FOLLOW_PATH
from quorate.controller.permissions.permission import ByItem, OnCluster, Open, Permission

_READ: Final = OnCluster("DESCRIBE")
_CHANGE: Final = OnCluster("ALTER")
#: Between brokers. Which of them speaks is looked at, too, once the message is read.
_EXCHANGE: Final = OnCluster("CLUSTER_ACTION")

#: By method and path.
PERMISSIONS: Final[Mapping[tuple[str, str], Permission]] = {
    ("GET", "/v1/process"): _READ,
    ("GET", "/v1/image"): _READ,
    ("GET", "/v1/image/digest"): OnCluster("DESCRIBE", open_to="node"),
    ("GET", "/v1/rehearsal"): _READ,
    ("PUT", "/v1/rehearsal"): _CHANGE,
    ("GET", "/v1/brokers/{id}/directories"): _READ,
    ("POST", "/v1/brokers/{id}/directories/fail"): _CHANGE,
    ("PUT", "/v1/brokers/{id}/directories/cordoned"): _CHANGE,
    ("POST", FOLLOW_PATH): _EXCHANGE,
    ("GET", "/v1/topics"): ByItem("DESCRIBE on each Topic, others are left out"),
    ("GET", "/v1/topics/{name}"): ByItem("DESCRIBE on Topic, be it there or not"),
    ("GET", "/metrics"): _READ,
    ("GET", "/livez"): Open(),
    ("GET", "/readyz"): Open(),
}


def asks_for_the_secret(permission: Permission) -> bool:
    """Whether a route changes something, which asks for the secret where nobody has to say who he is."""
    return permission in (_CHANGE, _EXCHANGE)
