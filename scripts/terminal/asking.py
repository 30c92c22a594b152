"""A command's question to the controllers, and its exit code where there is no answer."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import typer

from quorate.controller.api.errors import HttpRefusal, is_unknown
from quorate.controller.client.attempts import Attempts, Sender
from quorate.controller.client.client import DEFAULT_TIMEOUT_MS, ControllerClient
from quorate.controller.client.connection import Connection
from quorate.metadata_log.errors import ApiError, NotController, OutcomeUnknown, Overloaded
from quorate.scripts.logins.cluster_variables import CERT_VARIABLE, PRINCIPAL_VARIABLE, SECRET_VARIABLE, USER_VARIABLE
from quorate.scripts.logins.named_login import find_login
from quorate.scripts.terminal.harmless import shown_subject
from quorate.scripts.terminal.places.controllers import (
    find_controllers,
    find_secret,
    is_insecure,
    local_directory,
    shows_certificate,
)
from quorate.scripts.terminal.places.proofs import kept_login, proof_for
from quorate.scripts.terminal.programs.documents import note_answer, note_files
from quorate.scripts.terminal.progress.patience import telling_who_is_waited_for

T = TypeVar("T")

#: Seconds that Ctrl-C waits for the answer to a change that was sent: what it did is needed to say how things stand.
_LAST_ANSWER_S: Final = 5.0
#: Somebody waits for the command: where nothing listens it is told so before long. Enough for a restart of one process.
_ABSENT_MS: Final = 5_000.0


class AskingClient(ControllerClient):
    """A client of commands, which says of which state its answers are."""

    def __init__(self, *args: Any, **options: Any) -> None:
        """As of ``ControllerClient``."""
        self._asked: list[Connection] = []
        super().__init__(*args, **options)

    def _connect(self, url: str) -> Connection:
        self._asked.append(super()._connect(url))
        return self._asked[-1]

    @property
    def high_watermark(self) -> int | None:
        """The end of what those who answered knew to be committed; None: none of them said."""
        return max((one.high_watermark for one in self._asked if one.high_watermark is not None), default=None)

    @property
    def is_change_out(self) -> bool:
        """Whether it was ended before the answer to a change that it had sent."""
        return isinstance(self.sender, Attempts) and self.sender.is_change_out

    @property
    def overload(self) -> Overloaded | None:
        """The refusal of a controller that has too much to do, while what it asks for is waited for."""
        return self.sender.overload if isinstance(self.sender, Attempts) else None


def client_of(
    urls: Sequence[str],
    secret: bytes | None,
    *,
    timeout_ms: float = DEFAULT_TIMEOUT_MS,
    principal: str | None = None,
    absent_ms: float | None = None,
    at: str | None = None,
    local: Path | None = None,
) -> AskingClient:
    """A client of these controllers, as commands are one: with the TLS, and without, that the environment names.

    ``local``: directory of the local cluster; None: of the one that commands look for.

    Raises:
        As ``ControllerClient``, ``find_tls``, ``find_login``, ``find_kept`` and ``is_insecure``.
        typer.BadParameter: a user and something else say who asks.
    """
    login = find_login()
    if login is not None:
        if secret is not None:
            raise typer.BadParameter(f"a secret file and {USER_VARIABLE} both say who asks: name one of them")
        if shows_certificate():
            raise typer.BadParameter(f"{CERT_VARIABLE} and {USER_VARIABLE} both say who asks: name one of them")
    proof = proof_for(urls, secret, local or local_directory(), logs_in=login is not None)
    return AskingClient(
        urls,
        shared_secret=proof.shown,
        login=login,
        tls=proof.tls,
        timeout_ms=timeout_ms,
        principal=principal,
        absent_ms=absent_ms,
        at=at,
        insecure=is_insecure(),
        sockets=proof.sockets,
    )


def _told_of_kept_login(error: HttpRefusal, urls: Sequence[str], secret: bytes | None) -> HttpRefusal:
    """The same refusal, with what to do where it is the login that is kept which is no longer valid."""
    kept = kept_login(urls, secret) if is_unknown(error) else None
    if kept is None:
        return error
    again = f"the login of {kept.principal} is no longer valid: quorate login {kept.user}, or quorate logout"
    return HttpRefusal(error.status, f"{error.message}; {again}", error.code)


def refuse_other_proofs(why: str) -> None:
    """Refuse what the environment names beside a login that is to be kept.

    Raises:
        typer.BadParameter: it names a secret or token, a user or a certificate. ``why``: that is refused.
    """
    for variable in (SECRET_VARIABLE, USER_VARIABLE, CERT_VARIABLE):
        if os.environ.get(variable):
            raise typer.BadParameter(f"{variable} says who asks, and {why}")


def ask(
    controllers: str | None,
    secret_file: Path | None,
    question: Callable[[ControllerClient], Awaitable[T]],
    principal: str | None = None,
    *,
    path: Path | None = None,
    at: str | None = None,
    about: str | None = None,
    tells: bool = False,
) -> T:
    """The answer to one question.

    Args:
        principal: who asks; without it the one that the environment names, if any.
        path: no controller is asked: files answer, as a controller in their state would.
        at: of which moment the answer is wanted; None: of now, or of all that the files hold.
        about: the one thing that something is asked for, which a refusal then names; None: there are several.
        tells: the question waits for more than an answer, and says so itself.

    Raises:
        ApiError: the answer is a refusal. NotController: no active one was found. OutcomeUnknown: a change may have
            been made. typer.BadParameter, InvalidUrl: nobody to ask.
        SecretInPlaintext: a secret would go over a network as it is.
        ImageNotAvailable, StorageError, ReplayError: nothing can be read from the files, or not of this moment.
    """
    if path is not None:
        return _of_files(path, at, question)
    who = principal or os.environ.get(PRINCIPAL_VARIABLE) or None
    urls, secret = find_controllers(controllers), find_secret(secret_file)

    clients: list[AskingClient] = []

    async def run() -> tuple[T, int | None]:
        async with client_of(urls, secret, principal=who, absent_ms=_ABSENT_MS, at=at) as client:
            clients.append(client)
            with nullcontext() if tells else telling_who_is_waited_for(urls, lambda: client.overload):
                return await question(client), client.high_watermark

    try:
        with _saying_what_is_out(clients):
            answer, end = _run(run)
        note_answer(end if at is None else None)
        return answer
    except HttpRefusal as error:
        raise _told_of_kept_login(error, urls, secret) from None
    except ApiError as error:
        if about is None or isinstance(error, (NotController, OutcomeUnknown, Overloaded)):
            raise  # of the request, whatever it asks for
        raise ApiError(error.code, f"{shown_subject(about)}: {error.message}", error.details) from None


def _of_files(path: Path, at: str | None, question: Callable[[ControllerClient], Awaitable[T]]) -> T:
    from quorate.scripts.terminal.offline import FileAnswers

    answer = _run(partial(_put_to, FileAnswers(path, at), question))
    note_files()
    return answer


@contextmanager
def _saying_what_is_out(clients: Sequence[AskingClient]) -> Iterator[None]:
    """Say where Ctrl-C ends the block that a change is out: one of the clients has sent it, and knows no answer."""
    try:
        yield
    except KeyboardInterrupt:
        if any(client.is_change_out for client in clients):
            sys.stderr.write("quorate: ended before the answer: the change may have been made, or may yet be\n")
        raise


async def answered(change: Coroutine[Any, Any, T]) -> T:
    """The answer to a change. Where Ctrl-C is pressed before it comes, what the change itself does with it is awaited.

    Raises:
        CancelledError: Ctrl-C was pressed; whatever came of the change by then, or did not. As the change itself.
    """
    sent = asyncio.ensure_future(change)
    try:
        return await asyncio.shield(sent)
    except asyncio.CancelledError:
        await asyncio.wait([sent], timeout=_LAST_ANSWER_S)
        if not sent.cancel() and not sent.cancelled():
            sent.exception()  # of which nobody is told: the command ends by Ctrl-C
        raise


async def _put_to(answers: Sender, question: Callable[[ControllerClient], Awaitable[T]]) -> T:
    async with ControllerClient((), sender=answers) as client:
        return await question(client)


def _run(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """As ``asyncio.run``. Ctrl-C waits while the loop is made: half a loop complains when it is dropped."""
    if threading.current_thread() is not threading.main_thread():
        return asyncio.run(work())  # Ctrl-C is the main thread's.
    interrupts: list[int] = []
    usual = signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    try:
        runner = asyncio.Runner()
        runner.get_loop()
    finally:
        signal.signal(signal.SIGINT, usual)
    with runner:
        if interrupts:
            raise KeyboardInterrupt
        try:
            return runner.run(work())
        except asyncio.CancelledError:
            # Nobody else cancels the work. A runner sets its count of Ctrl-C to 0 when it hears of it already, and
            # does not know then of what came in between.
            raise KeyboardInterrupt from None
