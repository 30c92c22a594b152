"""The environment variables that say where, how and in whose name commands ask: all of them, and no others."""

from __future__ import annotations

from typing import Final

#: Addresses of controllers; the directory of a local cluster.
CONTROLLERS_VARIABLE: Final = "QUORATE_CONTROLLERS"
DIRECTORY_VARIABLE: Final = "QUORATE_DIR"
#: The file of the shared secret, or of a token.
SECRET_VARIABLE: Final = "QUORATE_SHARED_SECRET_FILE"
#: The principal that commands ask as.
PRINCIPAL_VARIABLE: Final = "QUORATE_PRINCIPAL"
#: With which commands speak TLS: CAs, of several with commas between them, and a certificate with its key, all in PEM.
CA_VARIABLE: Final = "QUORATE_CA_FILE"
CERT_VARIABLE: Final = "QUORATE_CERT_FILE"
KEY_VARIABLE: Final = "QUORATE_KEY_FILE"
#: 1: what is secret is sent without TLS, too, and to other machines.
INSECURE_VARIABLE: Final = "QUORATE_INSECURE"
#: The user that commands log in as, without `User:`, and the file whose first line is the password.
USER_VARIABLE: Final = "QUORATE_USER"
PASSWORD_VARIABLE: Final = "QUORATE_PASSWORD_FILE"
MECHANISM_VARIABLE: Final = "QUORATE_MECHANISM"
#: 1: the user is the id of a delegation token, and the password its HMAC.
TOKEN_VARIABLE: Final = "QUORATE_DELEGATION_TOKEN"

#: A context takes the place of all of them together, so that no secret of one cluster is shown to another, and nobody
#: is asked there in the name that is for another.
REPLACED_VARIABLES: Final = frozenset(
    {
        CONTROLLERS_VARIABLE,
        DIRECTORY_VARIABLE,
        SECRET_VARIABLE,
        PRINCIPAL_VARIABLE,
        CA_VARIABLE,
        CERT_VARIABLE,
        KEY_VARIABLE,
        INSECURE_VARIABLE,
        USER_VARIABLE,
        PASSWORD_VARIABLE,
        MECHANISM_VARIABLE,
        TOKEN_VARIABLE,
    }
)
