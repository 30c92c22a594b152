"""An identity: the principal that a request is made by, how that was proved, and the node that it is, if it is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, get_args

from quorate.controller.decisions.origin import ANONYMOUS

#: How it was proved who asks. ``said``: not at all, but whoever reaches this node may say so (no authorizer).
Proof = Literal["certificate", "token", "scram", "jwt", "uid", "delegation-token", "seal", "said", "anonymous"]
NodeRole = Literal["controller", "broker"]

PROOFS: Final = get_args(Proof)
#: Brokers that one process may play.
NODE_IDS_MAX: Final = 4_096
_ID_MAX: Final = 2**31 - 1


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A process of the cluster: the controller, or the brokers, that it is."""

    role: NodeRole
    ids: frozenset[int]

    def __str__(self) -> str:
        return f"{self.role}/{','.join(map(str, sorted(self.ids)))}"

    def uris(self, cluster_id: str) -> tuple[str, ...]:
        """The URIs by which a certificate names it, in the order of its ids."""
        return tuple(f"quorate://{cluster_id}/{self.role}/{id_}" for id_ in sorted(self.ids))

    @classmethod
    def parse(cls, text: str) -> NodeIdentity | None:
        """The node of a text like ``broker/11,12``; None: it names none."""
        role, _, listed = text.partition("/")
        ids = listed.split(",")
        if role not in ("controller", "broker") or len(ids) > NODE_IDS_MAX:
            return None
        if not all(id_.isascii() and id_.isdigit() and len(id_) <= 10 and int(id_) <= _ID_MAX for id_ in ids):
            return None
        return cls("controller" if role == "controller" else "broker", frozenset(map(int, ids)))


@dataclass(frozen=True, slots=True)
class Identity:
    """Whoever makes a request."""

    #: ``Type:name``, what ACLs are about.
    principal: str
    proof: Proof
    #: A node acts for the cluster, by its number, and not by ACLs. None: it is no node.
    node: NodeIdentity | None = None
    #: From then on, in milliseconds since 1970, the proof is none: whoever issued it has set it an end, and nothing
    #: that is made by it may be good for longer. None: it has no such end.
    ends_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """An identity, and where it asks from."""

    identity: Identity
    #: IP address of the client, as the controller that it connected to saw it.
    address: str
    #: How many controllers passed the request on.
    hops: int = 0
    #: SHA-256 that the body must have: it was sealed with the head. None: nothing is known of it.
    body_digest: bytes | None = None
    #: The name that the program gives itself, which nobody checks; empty: none.
    client_id: str = ""
    #: The principal that asks in the identity's name; empty: none does.
    proxy: str = ""

    @property
    def principal(self) -> str:
        """Of the identity."""
        return self.identity.principal

    @property
    def is_proved(self) -> bool:
        """Whether it has shown that it is known here."""
        return self.identity.proof != "anonymous"


#: Nobody has said who it is.
NOBODY: Final = Identity(ANONYMOUS, "anonymous")
