"""``scram``: credentials, names, and exchanges of a server with clients, right and wrong ones."""

from __future__ import annotations

import base64
from typing import Any, Final

from quorate.controller.scram.credentials import (
    BadCredentialText,
    ServerCredential,
    TokenCredential,
    credential_of,
    credential_text,
)
from quorate.controller.scram.errors import (
    BadProofLength,
    ExchangeOver,
    OtherAuthorizationId,
    ScramError,
    ScramFailure,
)
from quorate.controller.scram.keys import EmptyPassword, client_key, salted_password, scram_keys
from quorate.controller.scram.messages import TOKEN_AUTHENTICATION
from quorate.controller.scram.names import sasl_name, user_name
from quorate.controller.scram.server import ScramServer
from quorate.scripts.conformance_runner.comparison import differences
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form

#: The original's classes, the narrower of ours first.
_CLASSES: Final[dict[type[ScramError], Form]] = {
    OtherAuthorizationId: {"class": "SaslAuthenticationException", "error": "SASL_AUTHENTICATION_FAILED"},
    ScramFailure: {"class": "SaslException"},
    BadProofLength: {"class": "IllegalArgumentException"},
    ExchangeOver: {"class": "IllegalSaslStateException", "error": "ILLEGAL_SASL_STATE"},
}
#: What Java throws for arguments is told apart by nothing here.
_BAD_ARGUMENT: Final = {"exception": {"class": "IllegalArgumentException"}}
_BAD_NUMBER: Final = "NumberFormatException"


def run_vector(vector: Any) -> VectorOutcome:
    """Texts and bytes as they are; exceptions by their class."""
    given = vector["input"]
    run = {"credential": _credential, "parse_credential": _parsed, "name": _names, "exchange": _exchange}[given["kind"]]
    expected = vector["expected"]
    if expected.get("exception", {}).get("class") == _BAD_NUMBER:  # a narrower one of the same
        expected = _BAD_ARGUMENT
    return VectorOutcome(vector["id"], differences(expected, run(given), ignores=("message",)))


def _credential(given: Form) -> Form:
    mechanism, salt = given["mechanism"], base64.b64decode(given["salt"])
    try:
        salted = salted_password(mechanism, given["password"], salt, given["iterations"])
    except EmptyPassword:
        return _BAD_ARGUMENT
    keys = scram_keys(mechanism, salted)
    return {
        "salted_password": _text(salted),
        "client_key": _text(client_key(mechanism, salted)),
        "stored_key": _text(keys.stored_key),
        "server_key": _text(keys.server_key),
        "credential": credential_text(ServerCredential(salt, *keys, given["iterations"])),
    }


def _parsed(given: Form) -> Form:
    try:
        found = credential_of(given["credential"])
    except BadCredentialText:
        return _BAD_ARGUMENT
    texts = {name: _text(getattr(found, name)) for name in ("salt", "stored_key", "server_key")}
    return {**texts, "iterations": found.iterations}


def _names(given: Form) -> Form:
    found: Form = {"sasl_name_of": sasl_name(given["text"])}
    try:
        return {**found, "user_name_of": user_name(given["text"])}
    except ScramFailure:
        return {**found, "user_name_exception": _BAD_ARGUMENT["exception"]}


def _exchange(given: Form) -> Form:
    users = {name: credential_of(text) for name, text in given["users"].items()}
    tokens = {
        id_: TokenCredential(token["owner"], token["expiry_ms"], credential_of(token["credential"]))
        for id_, token in given.get("tokens", {}).items()
    }
    server = ScramServer(given["mechanism"], given["server_nonce"], users.get, tokens.get)
    replies = [_reply(server, message) for message in given["messages"]]
    if server.login is None:
        return {"replies": replies, "complete": False}
    return {
        "replies": replies,
        "complete": True,
        "authorization_id": server.login.name,
        "tokenauth": server.login.extensions.get(TOKEN_AUTHENTICATION),
        "credential_lifetime_ms": server.login.expires_ms,
    }


def _reply(server: ScramServer, message: Any) -> Form:
    sent = base64.b64decode(message["base64"]) if isinstance(message, dict) else message.encode()
    try:
        said: Form = {"reply": server.answer(sent).decode()}
    except ScramError as error:
        said = {"exception": next(form for kind, form in _CLASSES.items() if isinstance(error, kind))}
    return {**said, "complete": server.login is not None}


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
