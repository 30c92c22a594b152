"""The base of all groups of a broker process's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_settings import SettingsError

from quorate.metadata_log.invalid_settings import InvalidSettings, problems_in

if TYPE_CHECKING:
    from pydantic._internal._model_construction import ModelMetaclass
else:
    ModelMetaclass = type(BaseModel)  # pydantic gives it no public name


class MadeByPrograms(ModelMetaclass):
    """Makes settings whose mistakes are ``InvalidSettings``, wherever a program makes them: whole, or group by group.

    A group in a file or in a mapping does not come by here; what is wrong in it is named as a part of the whole.
    """

    if not TYPE_CHECKING:  # type checkers go by the fields

        def __call__(self, *args: Any, **values: Any) -> Any:
            try:
                return super().__call__(*args, **values)
            except ValidationError as error:
                raise InvalidSettings(problems_in(error.errors(include_url=False))) from error
            except SettingsError as error:
                raise InvalidSettings(f"{error}: {error.__cause__}") from error


class BrokerSettingsGroup(BaseModel, metaclass=MadeByPrograms):
    """Settings that belong together.

    Raises:
        InvalidSettings: a value against its rule, or a name that no setting has.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
