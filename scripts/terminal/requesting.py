"""Requests from what was said on the command line."""

from __future__ import annotations

from typing import Any, TypeVar

import typer
from pydantic import BaseModel, ValidationError

M = TypeVar("M", bound=BaseModel)


def make(model: type[M], **values: Any) -> M:
    """A model of these values.

    Raises:
        BadParameter: one of them cannot be sent (too long, too many). It is not repeated: it may be a secret.
    """
    try:
        return model.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise typer.BadParameter(f"{where}: {first['msg'].removeprefix('Value error, ')}") from None
