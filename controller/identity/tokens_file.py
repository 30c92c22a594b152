"""The file of bearer tokens, read again when it has changed."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from quorate.controller.api.kept_files import KeptFile
from quorate.controller.identity.bearer_tokens import FILE_BYTES_MAX, BearerTokens, InvalidTokens
from quorate.controller.identity.identity import Identity
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.private_files import read_private

TOKENS_SETTING: Final = "access.tokens_file"


class TokensFile:
    """``FoundTokens`` of a file, which is read again when it has changed: whole, or not at all. None: no tokens."""

    def __init__(self, path: Path | None, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock``: seconds.

        Raises:
            InvalidSettings: it cannot be read, others than its owner may use it, or a line is wrong.
        """
        self.file = None if path is None else KeptFile(path, TOKENS_SETTING, _read, clock)

    @property
    def generation(self) -> int:
        """See ``FoundTokens``."""
        return 0 if self.file is None else self.file.generation

    def find(self, token: str) -> Identity | None:
        """See ``FoundTokens``."""
        return None if self.file is None else self.file().find(token)


def _read(path: Path) -> BearerTokens:
    data = read_private(path, TOKENS_SETTING, FILE_BYTES_MAX)
    try:
        return BearerTokens.parse(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidSettings(f"{TOKENS_SETTING} {path} is no UTF-8 text: byte {error.start}") from error
    except InvalidTokens as error:
        raise InvalidSettings(f"{TOKENS_SETTING} {path}: {error}") from error
