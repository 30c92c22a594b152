"""Outcomes of the things that one request names: a refused one is no exception, unless ``checked`` makes it one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import BaseModel

from quorate.controller.protocol.types import ItemResult
from quorate.metadata_log.errors import ApiError, ErrorCode

R = TypeVar("R", bound=BaseModel)

#: Fields by which answers name what they speak of, the wider one first.
_NAMES: Final = ("topic", "name", "resource_name", "user", "partition_index", "partition_id")
#: Of a long list of refusals, so many are in the sentence.
_SAID_MAX: Final = 3


@dataclass(frozen=True, slots=True)
class RefusedItem:
    """One thing that was not done."""

    #: As ``orders`` or ``orders-3``; empty for what has no name, as an ACL.
    subject: str
    code: ErrorCode
    message: str

    def __str__(self) -> str:
        what = f"{self.subject}: " if self.subject else ""
        return f"{what}{self.message} ({self.code.name})"


class Refused(ApiError):
    """Some of what a request asked for was refused; the rest was done. ``code`` is that of the first refusal."""

    def __init__(self, items: tuple[RefusedItem, ...]) -> None:
        said = "; ".join(map(str, items[:_SAID_MAX]))
        more = f"; and {len(items) - _SAID_MAX} more" if len(items) > _SAID_MAX else ""
        super().__init__(items[0].code, said + more)
        #: In the order of the answer.
        self.items = items


def checked(response: R) -> R:
    """The answer to a request about several things, if none of them was refused.

    Raises:
        Refused: some were; ``items`` says which. The others were done.
    """
    items = tuple(_refused(response, ""))
    if items:
        raise Refused(items)
    return response


def _refused(part: BaseModel, within: str) -> Iterator[RefusedItem]:
    """The refused items in this part of an answer and below it; ``within``: the name of the item that it is a part
    of.
    """
    own = [str(getattr(part, name)) for name in _NAMES if getattr(part, name, None) not in (None, "")]
    subject = "-".join([within, *own] if within else own)
    if isinstance(part, ItemResult) and part.error_code is not ErrorCode.NONE:
        yield RefusedItem(subject, part.error_code, part.error_message or "refused")
    for name in type(part).model_fields:
        value = getattr(part, name)
        for one in value if isinstance(value, list) else ():
            if isinstance(one, BaseModel):
                yield from _refused(one, subject)
