"""Drills on secrets and tokens: exchanged under writes, and nothing is restarted for it."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from quorate.controller.api.errors import is_unknown
from quorate.controller.api.tls_contexts import TlsContexts
from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.client.client import ControllerClient
from quorate.controller.client.connection import NoAnswer, NotSent
from quorate.controller.identity.bearer_tokens import token_line
from quorate.controller.identity.seals import Seals
from quorate.controller.protocol.tokens import CreateDelegationTokenRequest, RenewDelegationTokenRequest
from quorate.metadata_log.errors import ApiError
from quorate.scripts.certificates.holders import CA_NAME
from quorate.scripts.certificates.local_files import ADMIN_PRINCIPAL, CERTIFICATES_NAME, SECRET_NAME, node_paths
from quorate.scripts.cluster.making import logs_directory
from quorate.scripts.drills.drill import Drill
from quorate.scripts.drills.environment import DEADLINE_S, DrillBroken, DrillEnvironment
from quorate.scripts.drills.outcome import Expectation
from quorate.scripts.drills.rotation import EXPECTED, restart_a_standby, under_writes

#: Of the file of bearer tokens, and that of the secret of delegation tokens, in the place of the drill.
_TOKENS: Final = "tokens"
_TOKEN_SECRET: Final = "token-secret"
_ASK_MS: Final = 2_000.0
#: Between two questions to a controller that does not answer the first, in seconds.
_AGAIN_S: Final = 0.1
#: What was sent before it is answered within this time, in seconds.
_ANSWERED_S: Final = 4.0


def _new_secret() -> str:
    return secrets.token_hex(32)


def _write(path: Path, *lines: str) -> None:
    from quorate.scripts.certificates.certificate_files import write_whole  # slow to import

    write_whole(path.parent, {path.name: "".join(f"{line}\n" for line in lines).encode()})


async def _until_read(environment: DrillEnvironment, path: Path, times: int) -> None:
    """Until every controller has read the file so often again, as its log says: when it is used, or looked at in turn.

    None is asked with what is wrong to have it look: that many wrong proofs are an alarm, and rightly.
    """
    logs = [
        logs_directory(environment.local.cluster.directory) / f"{one.name}.log"
        for one in environment.controllers.values()
    ]

    async def look() -> bool | None:
        texts = [log.read_text(encoding="utf-8", errors="replace") for log in logs]
        seen = [sum("settings.file_read" in line and str(path) in line for line in text.splitlines()) for text in texts]
        return min(seen) >= times or None

    await environment.cluster.until(look, f"all have read {path.name} again", DEADLINE_S)
    environment.event("seen", f"all have read {path.name} again")


def _trusting(environment: DrillEnvironment) -> TlsContexts:
    """Of a client without a certificate."""
    ca = environment.local.cluster.directory / CERTIFICATES_NAME / CA_NAME
    return TlsFiles(TlsPaths(ca_files=(ca,))).as_client


async def _takers(environment: DrillEnvironment, *, token: str | None = None, secret: str | None = None) -> int:
    """The number of controllers that let in whoever shows a token, or as a controller seals by a secret."""
    urls, nodes = environment.cluster.members.controller_urls, frozenset(environment.controllers)
    shown, seal, tls = None if token is None else token.encode(), None, _trusting(environment)
    if secret is not None:
        seal = Seals(lambda: (secret.encode(),), min(nodes), nodes, lambda: time.time() * 1000).seal
        directory = environment.local.cluster.directory
        tls = TlsFiles(node_paths(directory, environment.controllers[min(nodes)].name)).as_client
    async with ControllerClient(urls, shared_secret=shown, seal=seal, tls=tls, timeout_ms=_ASK_MS) as client:
        return sum(await asyncio.gather(*(is_let_in(client, url) for url in urls)))


async def is_let_in(client: ControllerClient, url: str) -> bool:
    """Whether it is known who asks, whatever the answer is. Asked until there is one: under load some are late."""
    while True:
        try:
            await client.digest_of(url, 0)
        except (NotSent, NoAnswer):
            await asyncio.sleep(_AGAIN_S)
        except ApiError as error:
            return not is_unknown(error)
        else:
            return True


async def rotate_secret(environment: DrillEnvironment) -> None:
    path = (environment.local.cluster.directory / SECRET_NAME).resolve()
    old, new = path.read_text(encoding="ascii").strip(), _new_secret()
    begun = time.monotonic()
    async with under_writes(environment):
        for times, lines in enumerate(((old, new), (new, old), (new,)), start=1):
            begun = environment.event(
                "fault", f"the secret's file holds {' and '.join('new' if one == new else 'old' for one in lines)}"
            )
            _write(path, *lines)
            await _until_read(environment, path, times)
        let_in = [await _takers(environment, secret=one) for one in (old, new)]
        if let_in[1] != len(environment.controllers):
            raise DrillBroken(f"the new secret is believed by {let_in[1]} controllers")
        environment.measure("old_ones_let_in", let_in[0])
    await environment.settle(max(begun, await restart_a_standby(environment)))


async def rotate_token_secret(environment: DrillEnvironment) -> None:
    """A token lives as long as the secret that it was made with is believed."""
    path = (environment.workplace / _TOKEN_SECRET).resolve()
    old, new = path.read_text(encoding="ascii").strip(), _new_secret()
    tokens = environment.cluster.client.tokens

    async def made() -> bytes:
        return (await tokens.create(CreateDelegationTokenRequest())).hmac

    async def is_known(hmac: bytes) -> bool:
        try:
            await tokens.renew(RenewDelegationTokenRequest(hmac=hmac))
        except ApiError as error:
            if error.code.name != "DELEGATION_TOKEN_NOT_FOUND":
                raise
            return False
        return True

    first, refused = await made(), 0
    async with under_writes(environment):
        begun = environment.event("fault", "tokens are made with another secret from now on; both are believed")
        _write(path, new, old)
        await _until_read(environment, path, 1)
        second = await made()
        refused += sum([not await is_known(one) for one in (first, second)])
        _write(path, new)
        await _until_read(environment, path, 2)
        refused += not await is_known(second)
        environment.measure("old_ones_let_in", int(await is_known(first)))
    environment.measure("refused_tokens", refused)
    await environment.settle(max(begun, await restart_a_standby(environment)))


async def rotate_bearer_tokens(environment: DrillEnvironment) -> None:
    path = (environment.workplace / _TOKENS).resolve()
    old, new = _new_secret(), _new_secret()
    shown = old
    urls = environment.cluster.members.controller_urls

    async def until(token: str, count: int, what: str) -> None:
        async def look() -> bool | None:
            return await _takers(environment, token=token) == count or None

        await environment.cluster.until(look, what, DEADLINE_S)
        environment.event("seen", what)

    lines = {token: token_line(token, ADMIN_PRINCIPAL) for token in (old, new)}
    _write(path, lines[old])
    await until(old, len(urls), "the first token is known to all")

    def current() -> bytes:
        return shown.encode()

    tls = _trusting(environment)

    def client_to(urls: list[str]) -> ControllerClient:
        return ControllerClient(urls, shared_secret=current, tls=tls)

    async with under_writes(environment, client_to):
        begun = environment.event("fault", "a second token is known besides the first")
        _write(path, *lines.values())
        await until(new, len(urls), "the second token is known to all")
        shown = new
        await asyncio.sleep(_ANSWERED_S)  # what was sent with the first is answered long since
        _write(path, lines[new])
        await until(old, 0, "the first token is nobody's")
        environment.measure("old_ones_let_in", await _takers(environment, token=old))
    await environment.settle(max(begun, await restart_a_standby(environment)))


def _digest_of_nobody() -> str:
    """A line of the file of tokens before there is any: the hash of what nobody has."""
    return f"sha256:{hashlib.sha256(secrets.token_bytes(32)).hexdigest()} User:nobody\n"


_SETTINGS: Final[Mapping[str, str]] = {
    "ACCESS__TOKENS_FILE": f"{{place}}/{_TOKENS}",
    "TOKENS__SECRET_KEY_FILE": f"{{place}}/{_TOKEN_SECRET}",
}
_FILES: Final[Mapping[str, Callable[[], str]]] = {_TOKENS: _digest_of_nobody, _TOKEN_SECRET: _new_secret}

DRILLS: Final = (
    Drill(
        "rotate-secret",
        "the controllers' secret is exchanged under writes: no write is refused, nobody is elected",
        EXPECTED,
        rotate_secret,
        "destroys",
    ),
    Drill(
        "rotate-bearer-tokens",
        "a client's token is exchanged under its writes: none is refused, and the old token opens nothing",
        EXPECTED,
        rotate_bearer_tokens,
        "rigs",
        controller_settings=_SETTINGS,
        files=_FILES,
    ),
    Drill(
        "rotate-token-secret",
        "the secret of delegation tokens is exchanged: tokens made before are known until the old secret goes",
        (*EXPECTED, Expectation(name="refused_tokens", meaning="tokens that were right and not known", at_most=0)),
        rotate_token_secret,
        "rigs",
        controller_settings=_SETTINGS,
        files=_FILES,
    ),
)
