"""The credentials that logins are judged by: those of users in the newest committed state, and for all others made up.

Who asks with a name that nobody has gets a salt, too, always the same, and fails at the end as with a wrong password.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Final

from quorate.controller.api.kept_files import Secrets
from quorate.controller.identity.keys import DerivedKeys
from quorate.controller.scram.credentials import FindUser, ServerCredential, users_of
from quorate.controller.scram.keys import HASHES, ITERATIONS_MIN
from quorate.snapshots.image.image import EMPTY_IMAGE, MetadataImage

_LABEL: Final = b"quorate login of nobody 1"
#: Of a salt that is made up, as `quorate users set` makes them.
_SALT_BYTES: Final = 32


class LoginCredentials:
    """Of one controller. Follows its state once that is there; before, nobody has a credential."""

    def __init__(self, secrets: Secrets) -> None:
        """``secrets``: of the quorum, so that all controllers make up the same."""
        self._keys = DerivedKeys(secrets, _LABEL)
        self._image: Callable[[], MetadataImage] = lambda: EMPTY_IMAGE

    def follow(self, image: Callable[[], MetadataImage]) -> None:
        """``image``: gives the newest committed state."""
        self._image = image

    @property
    def state(self) -> tuple[object, ...]:
        """Of other identity as soon as a credential may be another."""
        return (self._image().scram,)

    def of_user(self, mechanism: str, name: str) -> ServerCredential | None:
        """A user's credential; None: there is none of this mechanism."""
        return users_of(self._image().scram, mechanism)(name)

    def users(self, mechanism: str) -> FindUser:
        """A search that finds a credential for every name."""

        def find(name: str) -> ServerCredential:
            # Made up in any case: whoever has a credential is not told by the time.
            made_up = self._made_up(mechanism, name)
            return self.of_user(mechanism, name) or made_up

        return find

    def _made_up(self, mechanism: str, name: str) -> ServerCredential:
        key = self._keys.now()[0]
        salt, stored_key, server_key = (
            hmac.digest(key, f"{part} {mechanism} {name}".encode(), HASHES[mechanism])
            for part in ("salt", "stored key", "server key")
        )
        return ServerCredential(salt[:_SALT_BYTES], stored_key, server_key, ITERATIONS_MIN)
