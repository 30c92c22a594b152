"""Every kind of file with something secret in it is refused where others may use it, whoever reads it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quorate.controller.api.tls_files import TlsFiles, TlsPaths
from quorate.controller.identity.tokens_file import TokensFile
from quorate.metadata_log.private_files import read_secret, read_secrets
from quorate.scripts.certificates.certificate_files import read_key_file
from quorate.scripts.cli.access.bearer_tokens import list_tokens
from quorate.scripts.logins.passwords import read_password
from quorate.scripts.terminal.places.controllers import find_secret


def key_of_tls(path: Path) -> object:
    return TlsFiles(TlsPaths(path.with_name("cert.pem"), path, (path.with_name("ca.pem"),)))


#: What it is, and how it is read.
KINDS: dict[str, Callable[[Path], object]] = {
    "shared_secret_file": read_secrets,
    "tokens.secret_key_file": lambda path: read_secret(path, "tokens.secret_key_file"),
    "--secret-file": find_secret,
    "access.tokens_file": TokensFile,
    "bearer-tokens --file": list_tokens,
    "--password-file": lambda path: read_password(path, "--password-file"),
    "tls.key_file": key_of_tls,
    "ca.key": read_key_file,
}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666])
@pytest.mark.parametrize("kind", KINDS)
def test_file_with_something_secret_that_others_may_use_is_not_read(tmp_path: Path, kind: str, mode: int) -> None:
    path = tmp_path / "secret"
    path.write_text("s" * 43 + "\n")
    os.chmod(path, mode)
    for public in ("cert.pem", "ca.pem"):
        (tmp_path / public).write_text("")
    with pytest.raises(Exception, match=f"has mode {mode:04o}: it must be for its owner alone"):
        KINDS[kind](path)
