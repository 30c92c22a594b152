"""Names of users in messages, where commas and equals signs stand for themselves in no other way than escaped."""

from __future__ import annotations

from quorate.controller.scram.errors import ScramFailure


def sasl_name(user: str) -> str:
    """A user's name as it stands in a message."""
    return user.replace("=", "=3D").replace(",", "=2C")


def user_name(name: str) -> str:
    """A user's name out of a message.

    Raises:
        ScramFailure: an equals sign in it escapes nothing.
    """
    # In this order, as Kafka has it: a bare comma passes, and what unescaping a comma leaves is not unescaped again.
    name = name.replace("=2C", ",")
    if "=" in name.replace("=3D", ""):
        raise ScramFailure("a name with an = that is not followed by 2C or 3D")
    return name.replace("=3D", "=")
