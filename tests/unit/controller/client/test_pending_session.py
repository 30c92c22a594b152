"""What a client takes for a secret."""

import pytest

from quorate.client import ControllerClient, InvalidArgument

TOKEN = "0123456789abcdef" * 2


@pytest.mark.parametrize(
    ("secret", "rule"),
    [
        (TOKEN, "must be bytes or a function or None, not str"),
        (f"{TOKEN}\n".encode(), "begins or ends with white space"),
        (b"", "is empty"),
        (f"{TOKEN}\r\nX-Quorate-Principal: User:admin".encode(), "must be printable ASCII"),
        (f"{TOKEN}é".encode(), "must be printable ASCII"),
    ],
)
def test_secret_that_no_request_can_show_is_refused_where_the_client_is_made(secret: object, rule: str) -> None:
    with pytest.raises(InvalidArgument, match=f"shared_secret {rule}") as refused:
        ControllerClient(["127.0.0.1:9"], shared_secret=secret)  # type: ignore[arg-type]
    assert TOKEN not in str(refused.value)
