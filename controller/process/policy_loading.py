"""The policies that a controller's settings name: found, made and looked at before anything is served."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

import structlog

from quorate.controller.decisions.policies import Policies
from quorate.controller.process.settings import PolicySettings
from quorate.metadata_log.invalid_settings import InvalidSettings
from quorate.metadata_log.tracebacks import traceback_text

log = structlog.get_logger(__name__)


def load_policies(settings: PolicySettings) -> Policies:
    """Import and make them.

    Raises:
        InvalidSettings: one that cannot be found, be made or be asked; names setting, value and rule.
    """
    return Policies(
        create_topic=_load("policies.create_topic", settings.create_topic),
        alter_config=_load("policies.alter_config", settings.alter_config),
        on_failure=_log_failure,
    )


def _log_failure(name: str, error: Exception) -> None:
    log.error("policy.failed", policy=name, exception=traceback_text(error))


def _load(setting: str, reference: str | None) -> Any:
    if reference is None:
        return None
    try:
        policy = _made(reference)
        _check(policy)
    except _Unusable as problem:
        raise InvalidSettings(f"{setting} {reference}: {problem}") from problem.__cause__
    log.info("policy.loaded", setting=setting, policy=reference)
    return policy


class _Unusable(Exception):
    """A policy that cannot be used: the reason, without the setting's name."""


def _made(reference: str) -> object:
    module_name, _, class_name = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        where = "where Python looks for modules: install it alongside quorate, or name its folder in PYTHONPATH"
        raise _Unusable(f"there is no module {error.name} {where}") from error
    except Exception as error:  # it is somebody else's, and may raise anything
        raise _Unusable(f"module {module_name} cannot be imported: {_text(error)}") from error
    made_by = getattr(module, class_name, None)
    if not isinstance(made_by, type):
        raise _Unusable(f"module {module_name} has no class {class_name}")
    try:
        return made_by()
    except Exception as error:  # as above
        raise _Unusable(f"{class_name}() failed: {_text(error)}") from error


def _check(policy: object) -> None:
    """Whether it can be asked; what it takes for an answer shows when it is."""
    validate = getattr(policy, "validate", None)
    if not callable(validate):
        raise _Unusable(f"{type(policy).__name__} has no method validate")
    if inspect.iscoroutinefunction(validate):
        raise _Unusable(f"{type(policy).__name__}.validate is a coroutine function: a policy answers at once")
    try:
        inspect.signature(validate).bind(object())
    except TypeError as error:
        raise _Unusable(f"{type(policy).__name__}.validate does not take one argument: {error}") from error


def _text(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
