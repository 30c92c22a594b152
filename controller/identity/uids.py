"""Whoever asks through this controller's Unix socket: a user of this machine, whose number the kernel says."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.controller.identity.identity import Identity


def principal_of(uid: int) -> str:
    """The principal that a user of this machine is, where nothing else is said of him."""
    return f"User:uid-{uid}"


class UidIdentities:
    """Of one controller process."""

    def __init__(self, own_uid: int, named: Mapping[int, str]) -> None:
        """``own_uid``: the user that the process runs as. ``named``: principals by uid, where settings name them."""
        self._own_uid = own_uid
        self._named = named
        #: None: somebody else was made of him.
        self._own = None if own_uid in named else Identity(principal_of(own_uid), "uid")

    def identity(self, uid: int) -> Identity:
        """The identity of this user."""
        return Identity(self._named.get(uid) or principal_of(uid), "uid")

    def is_known(self, uid: int) -> bool:
        """Whether he needs no secret here: he could read that of this process, or settings name him."""
        return uid == self._own_uid or uid in self._named

    def is_own(self, identity: Identity) -> bool:
        """Whether it is the user that the process runs as, and nobody made somebody else of him.

        He may do everything: he could change the process's files. By another proof the same name is anybody's.
        """
        return identity == self._own
