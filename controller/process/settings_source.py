"""Sources of settings: a TOML file, the environment, `--set name=value` on the command line. The later wins.

Names that mean nothing are refused in each of the three: a misspelt setting must not be a silent default.
Works for any settings class whose groups are nested models (`group.name`, `PREFIX_GROUP__NAME`).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsError,
)

from quorate.metadata_log.invalid_settings import InvalidSettings, problems_in

S = TypeVar("S", bound=BaseSettings)


def load_settings(
    settings_class: type[S],
    file: Path | None,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
) -> S:
    """Read the settings: ``file``, then the environment (the process's by default), then ``overrides``.

    Raises:
        InvalidSettings: a file that cannot be read, an unknown name, a value against its rule.
    """
    from_file = _read_file(file) if file is not None else {}
    from_overrides = _parse_overrides(overrides)
    variables = dict(os.environ if environment is None else environment)
    _refuse_unknown_variables(settings_class, variables)

    class Loaded(settings_class):  # type: ignore[valid-type,misc]  # a class made here: its sources are this call's
        @classmethod
        def settings_customise_sources(
            cls, settings_cls: type[BaseSettings], **_: PydanticBaseSettingsSource
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            from_environment = EnvSettingsSource(settings_cls)
            from_environment.env_vars = {name.lower(): value for name, value in variables.items()}
            return (
                InitSettingsSource(settings_cls, from_overrides),
                from_environment,
                InitSettingsSource(settings_cls, from_file),
            )

    try:
        loaded: S = Loaded()
    except ValidationError as error:
        raise InvalidSettings(
            problems_in(error.errors(include_url=False), tuple(setting_names(settings_class)))
        ) from error
    except SettingsError as error:
        raise InvalidSettings(f"{error}: {error.__cause__}") from error
    return loaded


def setting_names(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """Names of all settings, ``group.name``, in the order of their declaration."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from setting_names(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def environment_name(settings_class: type[BaseSettings], setting: str) -> str:
    """The environment variable of a setting ``group.name``."""
    config = settings_class.model_config
    return (config["env_prefix"] + setting.replace(".", config["env_nested_delimiter"] or "_")).upper()


def _read_file(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise InvalidSettings(f"settings file {file} cannot be read: {why}") from error


def _parse_overrides(overrides: Sequence[str]) -> dict[str, Any]:
    parsed: dict[str, Any] = {}
    for override in overrides:
        name, equals, text = override.partition("=")
        if not equals or not name:
            raise InvalidSettings(f"{override!r} is not name=value")
        *groups, last = name.split(".")
        place = parsed
        for group in groups:
            place = place.setdefault(group, {})
            if not isinstance(place, dict):
                raise InvalidSettings(f"{name}: {group} was given a value before")
        place[last] = _parse_value(text)
    return parsed


def _parse_value(text: str) -> object:
    """A TOML value; what is none is a string, so that nobody has to quote twice on a command line."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _refuse_unknown_variables(settings_class: type[BaseSettings], variables: Mapping[str, str]) -> None:
    prefix = settings_class.model_config["env_prefix"].upper()
    names = [*setting_names(settings_class), *settings_class.model_fields]
    known = {environment_name(settings_class, name) for name in names}
    unknown = sorted(name for name in variables if name.upper().startswith(prefix) and name.upper() not in known)
    if unknown:
        raise InvalidSettings(f"{', '.join(unknown)}: no setting has this name")
