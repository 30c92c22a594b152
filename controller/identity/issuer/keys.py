"""Sources of an issuer's keys: a file, which is read again when it has changed, or an address, asked again."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import aiohttp
import structlog

from quorate.controller.api.kept_files import KeptFile
from quorate.controller.identity.issuer.key_sets import JWKS_BYTES_MAX, InvalidJwks, IssuerKeys
from quorate.metadata_log.invalid_settings import InvalidSettings

log = structlog.get_logger()

JWKS_FILE_SETTING: Final = "access.jwt.jwks_file"
#: Between two questions to the issuer, whoever shows tokens with keys that nobody has; and where nobody does.
_ASK_S_MIN: Final = 30.0
_ASK_S_MAX: Final = 600.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10.0)


class KeysFile:
    """``KeySource`` of a file. It is no secret."""

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            InvalidSettings: it cannot be used.
        """
        self.file = KeptFile(path, JWKS_FILE_SETTING, _read)

    @property
    def generation(self) -> int:
        """See ``KeySource``."""
        return self.file.generation

    def __call__(self) -> IssuerKeys:
        """See ``KeySource``."""
        return self.file()

    def want(self, key_id: str) -> None:
        """See ``KeySource``: a file is looked at in any case."""


class KeysAddress:
    """``KeySource`` of an address. While the issuer does not answer, the keys of before hold."""

    def __init__(self, url: str, ca_file: Path | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """``url``: with https. ``ca_file``: whom to trust; None: whom the system does. ``clock``: seconds.

        Raises:
            InvalidSettings: the file cannot be used.
        """
        self._url = url
        try:
            self._tls = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise InvalidSettings(f"access.jwt.jwks_ca_file {ca_file} cannot be used: {error}") from error
        self._clock = clock
        self._keys = IssuerKeys({})
        self._wanted = asyncio.Event()
        self.generation = 0

    def __call__(self) -> IssuerKeys:
        """See ``KeySource``; none before the issuer has answered."""
        return self._keys

    def want(self, key_id: str) -> None:
        """See ``KeySource``: the issuer is asked soon."""
        self._wanted.set()

    async def run(self) -> None:
        """Ask until it is cancelled: when a key is wanted, and now and then."""
        async with aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as session:
            while True:
                self._wanted.clear()
                asked_at = self._clock()
                await self.ask(session)
                try:
                    async with asyncio.timeout(_ASK_S_MAX):
                        await self._wanted.wait()
                except TimeoutError:
                    continue
                await asyncio.sleep(max(0.0, asked_at + _ASK_S_MIN - self._clock()))

    async def ask(self, session: aiohttp.ClientSession) -> None:
        """Ask once."""
        try:
            keys = IssuerKeys.parse(await self._fetched(session))
        except (aiohttp.ClientError, TimeoutError, UnicodeError, InvalidJwks) as error:  # no host is called `a..b`
            log.warning("access.issuer_keys_refused", url=self._url, error=str(error) or type(error).__name__)
            return
        self._keys = keys
        self.generation += 1
        log.info("access.issuer_keys_read", url=self._url, keys=len(keys))

    async def _fetched(self, session: aiohttp.ClientSession) -> bytes:
        async with session.get(self._url, allow_redirects=False, timeout=_TIMEOUT, ssl=self._tls) as answer:
            if answer.status != 200:
                raise InvalidJwks(f"it answers {answer.status}")
            data = bytearray()
            async for piece in answer.content.iter_any():
                data += piece
                if len(data) > JWKS_BYTES_MAX:
                    raise InvalidJwks(f"a key set has at most {JWKS_BYTES_MAX} bytes")
        return bytes(data)


def _read(path: Path) -> IssuerKeys:
    try:
        with path.open("rb") as opened:
            return IssuerKeys.parse(opened.read(JWKS_BYTES_MAX + 1))
    except OSError as error:
        message = f"{JWKS_FILE_SETTING} {path} cannot be read: {error.strerror or error}"
        raise InvalidSettings(message) from error
    except InvalidJwks as error:
        raise InvalidSettings(f"{JWKS_FILE_SETTING} {path}: {error}") from error
