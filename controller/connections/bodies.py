"""Bodies in flight: the bytes of all that were announced or read and whose requests are not answered yet.

A principal that is not the cluster's own has a share, as for places (``places``), and all of them have another, so that
nodes and super users are heard however much others send.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from quorate.metadata_log.errors import Overloaded

#: Of all bytes, those of one principal, and of all principals; what is left is the cluster's own.
_PRINCIPAL_SHARE: Final = 0.25
_PRINCIPALS_SHARE: Final = 0.625


class Bodies:
    """Of one server. An owner is a principal; None: the cluster's own, for whom there is no bound but that of all."""

    def __init__(self, most: int, largest: int, note_refused: Callable[[], None]) -> None:
        """``most``: bytes in all. ``largest``: of one body, for which there is room wherever there is no other.

        ``note_refused`` is called for each body that there is no room for.
        """
        self._most = max(most, largest)
        self._most_of_one = max(int(most * _PRINCIPAL_SHARE), largest)
        self._most_of_principals = max(int(most * _PRINCIPALS_SHARE), largest)
        self._own = 0
        self._principals: Counter[str] = Counter()
        self._of_principals = 0
        self._note_refused = note_refused

    @property
    def taken(self) -> int:
        """Bytes in flight."""
        return self._own + self._of_principals

    def held(self, owner: str | None) -> HeldBody:
        """The room of one body, of which there is nothing yet."""
        return HeldBody(self, owner)

    def take(self, owner: str | None, size: int) -> None:
        """Make room for more bytes.

        Raises:
            Overloaded: there is none.
        """
        if owner is not None:
            self._check(owner, self._principals[owner] + size, self._most_of_one)
            self._check("principals", self._of_principals + size, self._most_of_principals)
        self._check("clients", self.taken + size, self._most)
        if owner is None:
            self._own += size
        else:
            self._principals[owner] += size
            self._of_principals += size

    def give_back(self, owner: str | None, size: int) -> None:
        """They are not needed any more."""
        if owner is None:
            self._own -= size
            return
        self._of_principals -= size
        self._principals[owner] -= size
        if not self._principals[owner]:
            del self._principals[owner]

    def _check(self, whose: str, wanted: int, most: int) -> None:
        if wanted > most:
            self._note_refused()
            message = f"bodies of {whose} in flight would have {wanted} bytes, {most} is the most: send fewer"
            raise Overloaded(message, "bodies_bytes_max")


class HeldBody:
    """The room of one body, until it is released."""

    def __init__(self, bodies: Bodies, owner: str | None) -> None:
        self._bodies = bodies
        self._owner = owner
        self._size = 0

    def grow(self, size: int) -> None:
        """There are so many bytes more of it. See ``Bodies.take``."""
        self._bodies.take(self._owner, size)
        self._size += size

    def release(self) -> None:
        """Its request is answered, or nobody waits for that any more."""
        self._bodies.give_back(self._owner, self._size)
        self._size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()
