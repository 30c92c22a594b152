"""The permission of a route: what is asked before its handler runs. Each row of the route table has one.

``told`` is what the table in docs/security.md says of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal

from quorate.controller.identity.identity import NodeRole
from quorate.controller.permissions.rights import NODE_OPERATION, Rights
from quorate.controller.protocol.acls import AclOperation


class Permission(ABC):
    """One of the kinds below."""

    @property
    @abstractmethod
    def told(self) -> str:
        """In the words of the documents."""

    @abstractmethod
    def check_caller(self, rights: Rights) -> None:
        """Refuse a caller that may not ask, whatever the body says: before that is read.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED.
        """

    def check(self, rights: Rights, body: Any) -> None:
        """Refuse a request that its caller may not make. ``body``: what it asks for, decoded.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED.
        """
        self.check_caller(rights)


@dataclass(frozen=True, slots=True)
class Open(Permission):
    """Anybody may, and need not prove anything."""

    @property
    def told(self) -> str:
        """See ``Permission``."""
        return "nothing, not even a token"

    def check_caller(self, rights: Rights) -> None:
        """See ``Permission``."""


@dataclass(frozen=True, slots=True)
class OnCluster(Permission):
    """An operation on the cluster, for the whole request."""

    operation: AclOperation
    #: Which of the cluster's own nodes may, too, whom no ACL is about; None: none of them.
    open_to: Literal["controller", "node"] | None = None
    #: The reason of the rule, for whoever is refused.
    why: str = ""

    @property
    def told(self) -> str:
        """See ``Permission``."""
        return f"{self.operation} on Cluster" + (f", or to be a {self.open_to} of it" if self.open_to else "")

    def check_caller(self, rights: Rights) -> None:
        """See ``Permission``."""
        node = rights.caller.identity.node
        if node is None or self.open_to not in (node.role, "node"):
            rights.need_on_cluster(self.operation, why=self.why)


@dataclass(frozen=True, slots=True)
class ByItem(Permission):
    """The handler asks for each thing that the request names or the answer would show."""

    rule: str

    @property
    def told(self) -> str:
        """See ``Permission``."""
        return self.rule

    def check_caller(self, rights: Rights) -> None:
        """See ``Permission``: nothing is asked of the whole."""


@dataclass(frozen=True, slots=True)
class AsNode(Permission):
    """The request is made in the name of a node, by that node. No ACL stands in for being it."""

    role: NodeRole
    #: The field of the body that says which node that is.
    field: str

    @property
    def told(self) -> str:
        """See ``Permission``."""
        return f"{NODE_OPERATION} on Cluster, as the {self.role} that `{self.field}` names"

    def check_caller(self, rights: Rights) -> None:
        """See ``Permission``."""
        rights.need_role(self.role)

    def check(self, rights: Rights, body: Any) -> None:
        """See ``Permission``."""
        self.check_caller(rights)
        rights.need_node(self.role, getattr(body, self.field))


@dataclass(frozen=True, slots=True)
class SuperUser(Permission):
    """Whoever is listed in the settings."""

    @property
    def told(self) -> str:
        """See ``Permission``."""
        return "to be a super user"

    def check_caller(self, rights: Rights) -> None:
        """See ``Permission``."""
        if not rights.is_super:
            raise rights.refusal("is not among access.super_users")
