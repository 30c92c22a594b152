"""The controllers that a command asks, chosen the same way in every command, and what it shows them.

A completed line goes by the same rules, and waits for no library of commands: they are imported by a refusal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quorate.controller.client.targets import InvalidUrl, controller_url
from quorate.metadata_log.private_files import read_secret
from quorate.scripts.cluster.plan import ClusterError, ClusterPlan
from quorate.scripts.logins.cluster_variables import (
    CA_VARIABLE,
    CERT_VARIABLE,
    DIRECTORY_VARIABLE,
    INSECURE_VARIABLE,
    KEY_VARIABLE,
)

if TYPE_CHECKING:
    import typer

    from quorate.controller.api.tls_contexts import TlsContexts

#: Where `scripts/up` keeps its cluster.
LOCAL_DIRECTORY: Final = Path("var")


def local_directory() -> Path:
    """Of the local cluster that commands look for."""
    return Path(os.environ.get(DIRECTORY_VARIABLE) or LOCAL_DIRECTORY)


def find_controllers(controllers: str | None) -> tuple[str, ...]:
    """The addresses that were given, else those of the local cluster.

    Raises:
        typer.BadParameter: neither is there, or one of them is no address.
    """
    if controllers is not None:
        return _addresses(controllers)
    directory = local_directory()
    plan = ClusterPlan.load(directory)
    if plan is None:
        where = directory if directory.is_absolute() else f"./{directory}"
        raise _refusal(
            "which controllers? Say --controllers HOST:PORT,..., --dir or --context, or set QUORATE_CONTROLLERS "
            f"(there is no local cluster in {where})"
        )
    return plan.controller_urls


def local_sockets(directory: Path) -> dict[str, str]:
    """Paths of the Unix sockets of a local cluster's controllers, by URL; those that are not there are left out."""
    try:
        plan = ClusterPlan.load(directory)
    except ClusterError:
        return {}  # whoever needs it says so
    return {} if plan is None else plan.members.sockets_in(directory)


def shows_certificate() -> bool:
    """Whether the environment names a certificate of who asks."""
    return bool(os.environ.get(CERT_VARIABLE))


def find_tls(
    urls: Iterable[str], directory: Path | None = None, *, is_administrator: bool = True
) -> TlsContexts | None:
    """The certificates with which these are asked; None: there are none, and no TLS is spoken.

    They are those that the environment names, or the administrator's of the local cluster if it is one of its processes
    that is asked.

    Args:
        directory: of the local cluster; None: of the one that commands look for.
        is_administrator: whether nothing else says who asks. Else the local cluster's CA is trusted, and that is all:
            a certificate would count before a token or a password.

    Raises:
        InvalidTlsFiles: they cannot be used.
    """
    directory = directory or local_directory()
    named = _named_files()
    if named[CERT_VARIABLE] and not is_administrator:
        _say_that_two_are_shown()
    if not any(named.values()):
        if not _secured_urls(directory) & set(urls):
            return None
        from quorate.scripts.certificates.local_files import admin_tls, local_tls

        return admin_tls(directory) if is_administrator else local_tls(directory)
    from quorate.controller.api.tls_files import TlsFiles, TlsPaths, check_paths

    cas = tuple(Path(part) for part in (named[CA_VARIABLE] or "").split(",") if part)
    cert, key = (None if text is None else Path(text) for text in (named[CERT_VARIABLE], named[KEY_VARIABLE]))
    paths = TlsPaths(cert, key, cas)
    try:
        check_paths(paths, is_server=False)
    except ValueError:
        raise _refusal(f"{CERT_VARIABLE} and {KEY_VARIABLE} belong together: name both, or none") from None
    return TlsFiles(paths).as_client


@cache
def _say_that_two_are_shown() -> None:
    """Once in a command. Without an authorizer both may be asked for, one in the handshake and one by requests."""
    sys.stderr.write(
        f"quorate: {CERT_VARIABLE} and a secret or token are both shown: where an authorizer decides, the certificate"
        " says who asks\n"
    )


def is_insecure() -> bool:
    """Whether the environment says that what is secret may be sent without TLS to other machines.

    Raises:
        typer.BadParameter: it says something else.
    """
    said = os.environ.get(INSECURE_VARIABLE, "")
    if said not in ("", "0", "1"):
        raise _refusal(f"{INSECURE_VARIABLE} is {said[:20]!r}: it must be 1, or not set")
    return said == "1"


def _named_files() -> dict[str, str | None]:
    return {variable: os.environ.get(variable) or None for variable in (CA_VARIABLE, CERT_VARIABLE, KEY_VARIABLE)}


def _secured_urls(directory: Path) -> frozenset[str]:
    """Of the processes of a local cluster that has certificates; none where there is none, or nothing is to be read."""
    try:
        plan = ClusterPlan.load(directory)
    except ClusterError:
        return frozenset()
    if plan is None or not plan.is_secured:
        return frozenset()
    return frozenset(node.url for node in plan.members.nodes if node.url is not None)


def full_urls(addresses: Iterable[str], directory: Path | None = None) -> tuple[str, ...]:
    """Base URLs: an address without a scheme is of TLS where the environment names certificates, or the cluster of this
    directory, which has some, listens there.

    Raises:
        InvalidUrl: one of them is no address.
    """
    scheme = "https" if any(_named_files().values()) else "http"
    secured = _secured_urls(directory or local_directory())
    return tuple(
        controller_url(one, "https" if f"https://{one.strip().rstrip('/')}" in secured else scheme) for one in addresses
    )


def _addresses(text: str) -> tuple[str, ...]:
    try:
        return full_urls([part for part in text.split(",") if part.strip()] or [text])
    except InvalidUrl as error:
        raise _refusal(str(error), "--controllers") from None


def find_secret(file: Path | None) -> bytes | None:
    """The shared secret, or a token, if a file was named.

    Raises:
        InvalidSettings: the file cannot be used.
    """
    if file is None:
        return None
    return read_secret(file, "--secret-file")


def _refusal(why: str, option: str | None = None) -> typer.BadParameter:
    import typer

    return typer.BadParameter(why, param_hint=option)
