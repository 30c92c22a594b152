"""Public calls that are given what their signatures do not allow."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from quorate.metadata_log.arguments import checked_call, checked_calls
from quorate.metadata_log.errors import InvalidArgument


@checked_call
def call(
    urls: Sequence[str],
    count: int = 1,
    *,
    wait_ms: float | None = None,
    kind: Literal["a", "b"] = "a",
    settings: Mapping[str, bool | int | str] | None = None,
    make: Callable[[], object] | None = None,
    file: Path | str = "",
    **wanted: str | int,
) -> str:
    return "called"


@checked_calls
class Client:
    def __init__(self, name: str) -> None:
        self.name = name

    async def ask(self, name: str) -> str:
        return name

    async def pages(self, name: str) -> AsyncIterator[str]:
        yield name

    def _own(self, name: str) -> str:
        return name


@pytest.mark.parametrize(
    ("given", "rule"),
    [
        ({"urls": "127.0.0.1:1"}, "urls must be Sequence of str, not str"),
        ({"urls": ["a", 1]}, "urls must be Sequence of str, not list of int and str"),
        ({"count": True}, "count must be int, not bool"),
        ({"count": "1"}, "count must be int, not str"),
        ({"wait_ms": "1"}, "wait_ms must be float or None, not str"),
        ({"kind": 1}, "kind must be str, not int"),
        (
            {"settings": {"a": b""}},
            "settings must be Mapping of str and bool or int or str or None, not dict of bytes",
        ),
        ({"make": "f"}, "make must be a function or None, not str"),
        ({"file": b"x"}, "file must be Path or str, not bytes"),
        ({"file": Path}, "file must be Path or str, not the class Path itself"),
        ({"other": 1.5}, "wanted must be str or int, not float"),
    ],
)
def test_wrong_argument_is_refused_by_name_and_type(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        call(**({"urls": ["a"]} | given))
    assert str(refused.value) == f"call: {rule}"


def test_argument_that_the_signature_allows_is_handed_on() -> None:
    assert call(("a",), np.int64(3), wait_ms=3, kind="c", settings={"a": 1, "b": "x"}, make=dict, more="x") == "called"  # type: ignore[arg-type]
    assert call([], file=Path("x"), wait_ms=1.5) == "called"


def test_call_that_python_refuses_is_refused_by_python() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'urls'"):
        call()  # type: ignore[call-arg]


async def test_constructor_and_public_methods_of_a_class_are_checked() -> None:
    with pytest.raises(InvalidArgument, match=r"^Client: name must be str, not int$"):
        Client(1)  # type: ignore[arg-type]
    client = Client("a")
    with pytest.raises(InvalidArgument, match=r"^Client.ask: name must be str, not bytes$"):
        await client.ask(b"x")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match=r"^Client.pages: name must be str"):
        client.pages(1)  # type: ignore[arg-type]
    assert await client.ask("x") == client._own("x") == "x"
    assert [one async for one in client.pages("x")] == ["x"]
