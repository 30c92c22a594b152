"""Names from outside on a terminal: what would move its cursor, colour it or turn text around is shown as its number.

Names of users, racks, hosts, configs come from whoever may write them, and from files of other clusters. Printed as
they are they could clear the screen, change its title, or put words into the mouth of a command.

The form is that of JSON and Python, ``\\u001b``, so what is printed as JSON says the same as before.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final, TextIO

#: Characters of Unicode's categories Cc, Cf, Zl, Zp and Cs, but for line end and tab, which are ours; a test compares.
_HARMFUL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u2028-\u202e"
    "\u2060-\u2064\u2066-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]"
)

_LINE_CHARS_MAX: Final = 500


def shown(text: str) -> str:
    """A text of several lines or cells, harmless."""
    return _HARMFUL.sub(_number, text)


def shown_name(text: str) -> str:
    """The same for what belongs into one line, and one cell of it."""
    return shown(text).replace("\n", "\\u000a").replace("\t", "\\u0009")


def shown_subject(text: str) -> str:
    """The name that a sentence begins with, so that an empty one is seen."""
    return text or "''"


def shown_line(text: str) -> str:
    """The same for a line of a length that nobody has bounded, as out of a file: of a long one the beginning."""
    more = f"... ({len(text):,} characters)" if len(text) > _LINE_CHARS_MAX else ""
    return shown_name(text[:_LINE_CHARS_MAX]) + more


def _number(found: re.Match[str]) -> str:
    # As JSON does: in units of UTF-16.
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


class HarmlessStream:
    """A text stream through which nothing harmful gets. All else is the stream's that it stands for."""

    def __init__(self, stream: TextIO) -> None:
        #: Whoever writes sequences for the terminal on purpose writes here. Rich looks under this name by itself.
        self.rich_proxied_file = stream

    def write(self, text: str) -> int:
        """Write it in its harmless form."""
        return self.rich_proxied_file.write(shown(text))

    def writelines(self, lines: Iterable[str]) -> None:
        """Write all of them."""
        self.rich_proxied_file.writelines(map(shown, lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rich_proxied_file, name)


def terminal_of(stream: TextIO) -> TextIO:
    """The stream itself, for whoever makes what he writes harmless and then colours it."""
    return stream.rich_proxied_file if isinstance(stream, HarmlessStream) else stream


@contextmanager
def harmless_output() -> Iterator[None]:
    """A block during which all that the program prints is harmless."""
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = HarmlessStream(out), HarmlessStream(err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
