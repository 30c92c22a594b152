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
from quorate.controller.identity.issuer.key_sets import JWKS_BYTES_MAX, NO_KEY, InvalidJwks, IssuerKeys
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.regular_files import reading

log = structlog.get_logger()

JWKS_FILE_SETTING: Final = "access.jwt.jwks_file"
#: Between two questions to the issuer, where it did not answer, or whoever shows tokens with keys that nobody has; and
#: where all is well.
_ASK_S_MIN: Final = 30.0
_ASK_S_MAX: Final = 600.0
_TIMEOUT: Final = aiohttp.ClientTimeout(total=10.0)


class KeysFile:
    """``KeySource`` of a file. It is no secret. One without any key that could be used is refused."""

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
    """``KeySource`` of an address.

    What the issuer says holds, also that it has no keys. While it does not answer the keys of before hold, for a time:
    one of them may have been taken back, and whoever stole it may be who keeps the issuer from saying so.
    """

    def __init__(
        self, url: str, ca_file: Path | None, kept_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Of nobody yet.

        Args:
            url: with https.
            ca_file: whom to trust; None: whom the system does.
            kept_s: for so long keys hold while the issuer does not answer.
            clock: seconds.

        Raises:
            InvalidSettings: the file cannot be used.
        """
        self._url = url
        try:
            self._tls = ssl.create_default_context(cafile=ca_file)
        except (OSError, ssl.SSLError) as error:
            raise InvalidSettings(f"access.jwt.jwks_ca_file {ca_file} cannot be used: {error}") from error
        self._kept_s = kept_s
        self._clock = clock
        self._keys = IssuerKeys({})
        self._keys_end = clock()
        self._generation = 0
        self._why_not: str | None = None
        self._wanted = asyncio.Event()
        #: Questions that were not answered by a key set.
        self.failures = 0

    @property
    def generation(self) -> int:
        """See ``KeySource``: another one when keys end that the issuer has not said again, too."""
        self()
        return self._generation

    @property
    def trouble(self) -> str | None:
        """The fault of now, in a sentence; None: the issuer has said its keys."""
        keys = self()
        if self._why_not is None:
            return None if keys else f"{self._url}: {NO_KEY}: nobody is known by a token of the issuer"
        left_s = self._keys_end - self._clock()
        held = f"those of before hold for {left_s / 60:.0f} min more" if keys else "nobody is known by a token of it"
        return f"{self._url} does not say them: {self._why_not}; {held}"

    def __call__(self) -> IssuerKeys:
        """See ``KeySource``; none before the issuer has answered."""
        if self._keys and self._clock() >= self._keys_end:
            log.error("access.issuer_keys_ended", url=self._url, kept_s=self._kept_s, error=self._why_not)
            self._take(IssuerKeys({}))
        return self._keys

    def want(self, key_id: str) -> None:
        """See ``KeySource``: the issuer is asked soon."""
        self._wanted.set()

    async def run(self, tell: Callable[[], None]) -> None:
        """Ask until it is cancelled: when a key is wanted, and now and then. ``tell`` is called after each question."""
        async with aiohttp.ClientSession(trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as session:
            while True:
                self._wanted.clear()
                asked_at = self._clock()
                await self.ask(session)
                tell()
                try:
                    async with asyncio.timeout(_ASK_S_MAX if self._why_not is None else _ASK_S_MIN):
                        await self._wanted.wait()
                except TimeoutError:
                    continue
                await asyncio.sleep(max(0.0, asked_at + _ASK_S_MIN - self._clock()))

    async def ask(self, session: aiohttp.ClientSession) -> None:
        """Ask once."""
        asked_at = self._clock()
        try:
            keys = IssuerKeys.parse(await self._fetched(session))
        except (aiohttp.ClientError, TimeoutError, UnicodeError, InvalidJwks) as error:  # no host is called `a..b`
            self.failures += 1
            self._why_not = str(error) or type(error).__name__
            log.warning("access.issuer_keys_refused", url=self._url, error=self._why_not)
            return
        self._why_not, self._keys_end = None, asked_at + self._kept_s
        if keys != self._keys:
            log.info("access.issuer_keys_read", url=self._url, keys=len(keys))
            self._take(keys)

    def _take(self, keys: IssuerKeys) -> None:
        self._keys = keys
        self._generation += 1

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
        with reading(str(path)) as opened:
            keys = IssuerKeys.parse(opened.read(JWKS_BYTES_MAX + 1))
        if not keys:
            raise InvalidJwks(NO_KEY)
        return keys
    except OSError as error:
        message = f"{JWKS_FILE_SETTING} {path} cannot be read: {error.strerror or error}"
        raise InvalidSettings(message) from error
    except InvalidJwks as error:
        raise InvalidSettings(f"{JWKS_FILE_SETTING} {path}: {error}") from error
