"""The reply to a login."""

from __future__ import annotations

from quorate.controller.api.models import HttpModel


class LoginReply(HttpModel):
    """A login that succeeded. To be believed once the server's proof, in `Authentication-Info`, is right."""

    token: str
    """To be sent as `Authorization: Bearer`, to any controller. It is a secret."""
    principal: str
    """`Type:name` of whoever sends it."""
    lifetime_ms: int
    """It ends after so long, or before, when the password is changed."""
    expires_at_ms: int
    """The same, in milliseconds since 1970 by the controller's clock."""
