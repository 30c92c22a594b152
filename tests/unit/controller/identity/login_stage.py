"""Two controllers of one quorum, at which users log in; both go by one state and one clock, which a test moves."""

from __future__ import annotations

import hmac
from base64 import b64encode
from itertools import count

from quorate.controller.client.login import PasswordLogin, scram_client
from quorate.controller.identity.logins import FinishedLogin, Logins
from quorate.controller.identity.secrets import Secrets
from quorate.controller.scram.client import ScramClient
from quorate.controller.scram.credentials import ServerCredential
from quorate.controller.scram.http_fields import HttpStep
from quorate.controller.scram.keys import HASHES
from quorate.metadata_log.records.records import DelegationTokenRecord, UserScramCredentialRecord
from quorate.snapshots.image.image import EMPTY_IMAGE
from quorate.snapshots.image.image_parts import DelegationTokensImage, ScramImage
from quorate.snapshots.maps.persistent_map import PersistentMap
from tests.unit.controller.scram.exchanges import MECHANISM, credential

SECRET = b"the secret of the quorum, 32 characters"
MECHANISM_IDS = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
LIFETIME_MS = 900_000
TOKEN_ID = "AAAAAAAAAAAAAAAAAAAAbQ"
TOKEN_SECRET = b"what tokens are made with"


class LoginStage:
    """Controllers 0 and 1, and what they have in common."""

    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000.0
        self.image = EMPTY_IMAGE
        self.token_secrets: tuple[bytes, ...] = (TOKEN_SECRET,)
        self._users: dict[tuple[str, int], UserScramCredentialRecord] = {}
        self._numbers = count()
        self.controllers = [self.controller(SECRET), self.controller(SECRET)]
        self.set_user("ana", "pencil")

    def controller(self, secret: bytes, mechanisms: tuple[str, ...] = tuple(HASHES)) -> Logins:
        """One more, perhaps of another quorum."""
        return self.believing(lambda: (secret,), mechanisms)

    def believing(self, secrets: Secrets, mechanisms: tuple[str, ...] = tuple(HASHES)) -> Logins:
        """One more, whose secrets may change."""
        now, nonce = (lambda: self.now_ms), (lambda: f"nonce{next(self._numbers)}")
        made = Logins(secrets, lambda: self.token_secrets, mechanisms, LIFETIME_MS, now, nonce, now)
        made.credentials.follow(lambda: self.image)
        return made

    def set_user(self, name: str, password: str, mechanism: str = MECHANISM) -> ServerCredential:
        """Give a user a password."""
        made = credential(password, mechanism)
        self.hold_user(name, mechanism, made)
        return made

    def hold_user(self, name: str, mechanism: str, made: ServerCredential) -> None:
        """Give a user a credential."""
        number = MECHANISM_IDS[mechanism]
        record = UserScramCredentialRecord(name, number, made.salt, made.stored_key, made.server_key, made.iterations)
        self._hold(self._users | {(name, number): record})

    def remove_user(self, name: str, mechanism: str = MECHANISM) -> None:
        """Take it away."""
        gone = name, MECHANISM_IDS[mechanism]
        self._hold({key: record for key, record in self._users.items() if key != gone})

    def set_token(self, owner: str, ends_in_ms: int) -> PasswordLogin:
        """Make the only delegation token there is; what its bearer logs in with."""
        ends_ms = int(self.now_ms) + ends_in_ms
        record = DelegationTokenRecord(owner, owner, (), int(self.now_ms), ends_ms + 1, ends_ms, TOKEN_ID)
        self.image = self.image._replace(delegation_tokens=DelegationTokensImage(PersistentMap({TOKEN_ID: record})))
        password = b64encode(hmac.digest(TOKEN_SECRET, TOKEN_ID.encode(), "sha512")).decode()
        return PasswordLogin(TOKEN_ID, password, is_delegation_token=True)

    def remove_token(self) -> None:
        """Take it away."""
        self.image = self.image._replace(delegation_tokens=DelegationTokensImage())

    def log_in_as(self, login: PasswordLogin) -> FinishedLogin:
        """Both messages of this client, to the two controllers."""
        client = scram_client(login, "client")
        answer = self.controllers[0].begin(HttpStep(login.mechanism, "", client.first()))
        return self.controllers[1].finish(HttpStep(login.mechanism, answer.sid, client.last(answer.message)))

    def _hold(self, users: dict[tuple[str, int], UserScramCredentialRecord]) -> None:
        self._users = users
        self.image = self.image._replace(scram=ScramImage(PersistentMap(users)))

    def begin(
        self, user: str = "ana", password: str = "pencil", mechanism: str = MECHANISM
    ) -> tuple[HttpStep, HttpStep]:
        """The answer to the first message, from controller 0, and the last message."""
        client = ScramClient(mechanism, user, password, "client")
        answer = self.controllers[0].begin(HttpStep(mechanism, "", client.first()))
        return answer, HttpStep(mechanism, answer.sid, client.last(answer.message))

    def log_in(self, user: str = "ana", password: str = "pencil", mechanism: str = MECHANISM) -> FinishedLogin:
        """Both messages, to the two controllers."""
        return self.controllers[1].finish(self.begin(user, password, mechanism)[1])
