"""The credentials that logins are judged by: of users and delegation tokens in the newest state, else made up.

Who asks with a name that nobody has gets a salt, too, always the same, and fails at the end as with a wrong password.
Were salts of nobody others after an exchange of the quorum's secret, and those of users not, they would be told apart.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from base64 import b64encode
from collections.abc import Callable
from typing import Final, NamedTuple

from quorate.controller.access.delegation_tokens import token_hmac
from quorate.controller.access.token_ends import token_end_ms
from quorate.controller.identity.identity import Identity
from quorate.controller.identity.keys import DerivedKeys
from quorate.controller.identity.secrets import Secrets
from quorate.controller.scram.credentials import FindToken, FindUser, ServerCredential, TokenCredential, users_of
from quorate.controller.scram.keys import HASHES, ITERATIONS_MIN, salted_password, scram_keys
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage

_LABEL: Final = b"quorate login of nobody 1"
#: Of a salt that is made here, as `quorate users set` makes them.
_SALT_BYTES: Final = 32
#: Credentials of delegation tokens that are kept: each costs as many hashes as a login does its client.
_KEPT_MAX: Final = 4_096


class FoundCredential(NamedTuple):
    """A credential, and whom it logs in."""

    identity: Identity
    credential: ServerCredential
    #: When it ends by itself, in milliseconds since 1970; infinite: never.
    ends_ms: float


class LoginCredentials:
    """Of one controller. Follows its state once that is there; before, nobody has a credential."""

    def __init__(self, seeds: Secrets, token_secrets: Secrets | None, wall_ms: Callable[[], float]) -> None:
        """Of nobody yet.

        Args:
            seeds: the first is what is made up from, at all controllers the same.
            token_secrets: with which delegation tokens are made; None: there are none.
            wall_ms: milliseconds since 1970.
        """
        self._keys = DerivedKeys(seeds, _LABEL)
        self._token_secrets = token_secrets or tuple
        self._made_with = self._token_secrets()
        self._wall_ms = wall_ms
        self._image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE
        self._kept: dict[tuple[str, bytes], ServerCredential] = {}

    def follow(self, image: Callable[[], MetadataImage]) -> None:
        """``image``: gives the newest committed state."""
        self._image = image

    @property
    def state(self) -> tuple[object, ...]:
        """Of other identity as soon as a credential may be another."""
        image, secrets = self._image(), self._token_secrets()
        if secrets != self._made_with:
            self._made_with = secrets
        return image.scram, image.delegation_tokens, self._made_with

    @property
    def takes_tokens(self) -> bool:
        """Whether there is a secret that delegation tokens are made with."""
        return bool(self._token_secrets())

    @property
    def ranks(self) -> range:
        """The numbers of a delegation token's credentials: it has several while its secret is exchanged for another."""
        return range(max(1, len(self._token_secrets())))

    def find(self, mechanism: str, name: str, *, is_token: bool) -> tuple[FoundCredential, ...]:
        """The credentials of a user, or of a delegation token by its id, by rank; none where there is no such."""
        if is_token:
            return self._of_token(mechanism, name)
        credential = users_of(self._image().scram, mechanism)(name)
        identity = Identity(f"User:{name}", "scram")
        return () if credential is None else (FoundCredential(identity, credential, math.inf),)

    def users(self, mechanism: str) -> FindUser:
        """A search that finds a credential for every name."""

        def find(name: str) -> ServerCredential:
            # Made up in any case: whoever has a credential is not told by the time.
            made_up = self._made_up(mechanism, name)
            found = self.find(mechanism, name, is_token=False)
            return found[0].credential if found else made_up

        return find

    def tokens(self, mechanism: str, rank: int) -> FindToken:
        """The same for every id of a token, whose owner and end are looked up when the login is through."""

        def find(token_id: str) -> TokenCredential:
            made_up = self._made_up(mechanism, token_id)._replace(salt=_token_salt(mechanism, token_id))
            found = self._of_token(mechanism, token_id)
            return TokenCredential("", 0, found[rank].credential if rank < len(found) else made_up)

        return find

    def _made_up(self, mechanism: str, name: str) -> ServerCredential:
        key = self._keys.now()[0]
        salt, stored_key, server_key = (
            hmac.digest(key, f"{part} {mechanism} {name}".encode(), HASHES[mechanism])
            for part in ("salt", "stored key", "server key")
        )
        return ServerCredential(salt[:_SALT_BYTES], stored_key, server_key, ITERATIONS_MIN)

    def _of_token(self, mechanism: str, token_id: str) -> tuple[FoundCredential, ...]:
        record = self._image().delegation_tokens.tokens.get(token_id)
        if record is None or self._wall_ms() > token_end_ms(record):
            return ()
        identity, ends_ms = Identity(record.owner, "delegation-token"), token_end_ms(record) + 1
        passwords = [token_hmac(secret, token_id) for secret in self._token_secrets()]
        return tuple(FoundCredential(identity, self._kept_of(mechanism, token_id, one), ends_ms) for one in passwords)

    def _kept_of(self, mechanism: str, token_id: str, password: bytes) -> ServerCredential:
        """As Kafka's ``prepareScramCredentials``, but with a salt that is the same at every controller."""
        credential = self._kept.get((mechanism, password))
        if credential is None:
            salt = _token_salt(mechanism, token_id)
            salted = salted_password(mechanism, b64encode(password).decode(), salt, ITERATIONS_MIN)
            credential = ServerCredential(salt, *scram_keys(mechanism, salted), ITERATIONS_MIN)
            while len(self._kept) >= _KEPT_MAX:
                del self._kept[next(iter(self._kept))]
            self._kept[mechanism, password] = credential
        return credential


def _token_salt(mechanism: str, token_id: str) -> bytes:
    """Of every id, be there such a token or not. An HMAC needs no salt that nobody knows."""
    return hashlib.sha256(f"quorate delegation token {mechanism} {token_id}".encode()).digest()
