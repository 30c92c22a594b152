"""The rights of one caller at one state of the ACLs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Final

from quorate.controller.authorizer.authorizer import Authorizer
from quorate.controller.decisions.origin import ANONYMOUS, Grounds
from quorate.controller.identity.identity import Caller, Identity, NodeRole
from quorate.controller.protocol.acls import AclOperation, AclResourceType
from quorate.metadata_log.errors import ApiError, ErrorCode

#: The only resource of its type.
CLUSTER_NAME: Final = "kafka-cluster"
#: What nodes of the cluster may do, and all that they may: their certificates and tokens are for nothing else.
NODE_OPERATION: Final[AclOperation] = "CLUSTER_ACTION"
#: Asked about on the way to a change, for what its answer may show.
_LOOKS: Final = frozenset({"DESCRIBE", "DESCRIBE_CONFIGS", "DESCRIBE_TOKENS"})


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of ``caller``. Never change."""

    caller: Caller
    #: None: nobody is asked, and everything is allowed.
    authorizer: Authorizer | None
    #: Whether the caller may do everything, by the settings.
    is_super: bool
    #: Learns what allowed a change.
    grounds: Grounds = field(default_factory=lambda: Grounds("no authorizer decides"), compare=False)

    def may(self, operation: AclOperation, resource_type: AclResourceType, name: str) -> bool:
        """Whether the caller may do this to a resource, which need not exist.

        Raises:
            ApiError: INVALID_REQUEST, a principal that cannot be a client's.
        """
        if self.is_super or self.authorizer is None:
            return True
        if self.caller.identity.node is not None:
            return operation == NODE_OPERATION and resource_type == "CLUSTER"
        asked = (self.caller.principal, self.caller.address, operation, resource_type, name)
        is_allowed = self.authorizer.authorize(*asked)
        if is_allowed and operation not in _LOOKS:
            self.grounds.note(partial(self.authorizer.reason, *asked))
        return is_allowed

    def may_on_cluster(self, operation: AclOperation) -> bool:
        """Whether the caller may do this to the cluster."""
        return self.may(operation, "CLUSTER", CLUSTER_NAME)

    def need_on_cluster(self, *operations: AclOperation, why: str = "") -> None:
        """Refuse a caller that may not do all of these to the cluster: all that are missing are named at once.

        Args:
            why: the reason of the rule, where it does not go without saying.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED.
        """
        missing = [operation for operation in operations if not self.may_on_cluster(operation)]
        if missing:
            raise self.refusal(f"needs {' and '.join(missing)} on the cluster ({CLUSTER_NAME})" + (why and f": {why}"))

    def lacks(self, *needed: str) -> str:
        """The sentence about what the caller needs one of and has not. It says nothing of what is there."""
        return f"{self.caller.principal} needs {' or '.join(needed)}."

    def need_node(self, role: NodeRole, node_id: int) -> None:
        """Refuse a caller that is not this node, in whose name it asks. No ACL stands in for being it.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED.
        """
        node = self.caller.identity.node
        if not self.is_super and (node is None or node.role != role or node_id not in node.ids):
            raise self.refusal(f"is not {role} {node_id}, in whose name it asks")

    def need_role(self, role: NodeRole) -> None:
        """Refuse a caller that is no such node at all.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED.
        """
        node = self.caller.identity.node
        if not self.is_super and (node is None or node.role != role):
            raise self.refusal(f"is not a {role}, in whose name it asks")

    @property
    def shown_to(self) -> str | None:
        """The principal that is shown what it may describe, and no more; None: everything is shown."""
        return None if self.is_super or self.authorizer is None else self.caller.principal

    @property
    def bounded_principal(self) -> str | None:
        """The principal whose share of what brokers live by is bounded; None: the caller is a node, or nobody asks."""
        is_free = self.authorizer is None or self.caller.identity.node is not None
        return None if is_free else self.caller.principal

    @property
    def owner(self) -> str | None:
        """The principal whose use of this node is bounded; None: the caller is one of the cluster's own.

        The same as ``AccessControl.owner_of_body`` says before there are rights.
        """
        return None if self.is_super else self.bounded_principal

    def refusal(self, why: str) -> ApiError:
        """The refusal of a whole request: ``why`` follows the name of the principal."""
        message = f"Cluster authorization failed: {self.caller.principal} {why}."
        return ApiError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)


#: Of whoever reads files of his own, where nobody is asked.
ALL_RIGHTS: Final = Rights(Caller(Identity(ANONYMOUS, "said"), ""), None, is_super=True)
