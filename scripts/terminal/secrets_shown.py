"""The choice between hidden secrets and shown ones, the same in every command that prints records or configs."""

from __future__ import annotations

from typing import Annotated

import typer

from quorate.metadata_log.records.hidden_values import IsSecret, no_secrets

ShowSecrets = Annotated[
    bool,
    typer.Option(
        "--show-secrets",
        help="Show what may authenticate somebody too: salts and keys of SCRAM users, configs that may be secrets.",
    ),
]


def secrets_rule(*, show_secrets: bool) -> IsSecret:
    """The rule of `configs describe`, or that nothing is hidden."""
    if show_secrets:
        return no_secrets
    # Looking into a file for no secrets waits for less.
    from quorate.controller.configs.resources import SHOWN_NAMES

    return SHOWN_NAMES
