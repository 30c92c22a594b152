"""Policies are found, made and looked at when a controller starts; what cannot be used is said in one sentence."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError
from structlog.testing import capture_logs

from quorate.controller.decisions.policies import NewTopic, Policies, PolicyViolation
from quorate.controller.process.policy_loading import load_policies
from quorate.controller.process.settings import PolicySettings
from quorate.metadata_log.errors import ApiError
from quorate.metadata_log.invalid_settings import InvalidSettings

MODULE = """
import json
from quorate.controller.decisions.policies import PolicyViolation

class Good:
    def validate(self, shown):
        raise PolicyViolation("never")

class Failing:
    def validate(self, shown):
        raise LookupError("no such team")

class Raising(Good):
    def __init__(self):
        raise ValueError("no rules file")

class Demanding(Good):
    def __init__(self, rules):
        pass

class Mute:
    validate = None

class Waiting:
    async def validate(self, shown):
        pass

class Curious:
    def validate(self, shown, more):
        pass

number = 5
"""


@pytest.fixture
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that only this test has."""
    name = "rules_of_a_test"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "broken_rules_of_a_test.py").write_text("raise RuntimeError('not today')", encoding="utf-8")
    (tmp_path / "poor_rules_of_a_test.py").write_text("import a_module_nobody_has", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield name
    for module in [module for module in sys.modules if module.endswith("rules_of_a_test")]:
        del sys.modules[module]


def test_nothing_is_asked_where_nothing_is_said() -> None:
    assert load_policies(PolicySettings()) == Policies()


def test_policy_of_the_settings_is_made_and_asked(rules: str) -> None:
    policies = load_policies(PolicySettings(create_topic=f"{rules}:Good", alter_config=f"{rules}:Good"))
    for policy in (policies.create_topic, policies.alter_config):
        with pytest.raises(PolicyViolation, match="never"):
            policy.validate(object())  # type: ignore[union-attr,arg-type]


def test_failure_of_a_policy_is_logged_with_what_it_raised(rules: str) -> None:
    policies = load_policies(PolicySettings(create_topic=f"{rules}:Failing"))
    with capture_logs() as logs, pytest.raises(ApiError, match="the policy create_topic failed"):
        policies.check_topic(lambda: NewTopic("t", 1, 1, None, {}))
    (said,) = logs
    assert (said["event"], said["policy"]) == ("policy.failed", "create_topic")
    assert said["exception"].endswith(": no such team")


@pytest.mark.parametrize(
    ("reference", "rule"),
    [
        ("no_rules:Good", "there is no module no_rules where Python looks for modules"),
        ("poor_rules_of_a_test:Good", "there is no module a_module_nobody_has where"),
        ("broken_rules_of_a_test:Good", "cannot be imported: RuntimeError: not today"),
        ("rules_of_a_test:Absent", "module rules_of_a_test has no class Absent"),
        ("rules_of_a_test:number", "module rules_of_a_test has no class number"),
        ("rules_of_a_test:Raising", r"Raising\(\) failed: ValueError: no rules file"),
        ("rules_of_a_test:Demanding", r"Demanding\(\) failed: TypeError: .*rules"),
        ("rules_of_a_test:Mute", "Mute has no method validate"),
        ("rules_of_a_test:Waiting", "Waiting.validate is a coroutine function"),
        ("rules_of_a_test:Curious", "Curious.validate does not take one argument: .*more"),
    ],
)
@pytest.mark.usefixtures("rules")
def test_policy_that_cannot_be_used_is_named_with_setting_and_reason(reference: str, rule: str) -> None:
    with pytest.raises(InvalidSettings, match=f"^policies.alter_config {reference}: .*{rule}"):
        load_policies(PolicySettings(alter_config=reference))


@pytest.mark.parametrize(
    "text", ["module", "module:", ":Class", "mod ule:Class", "module:Class:x", "a/b:C", "m:" + "C" * 300]
)
def test_what_names_no_class_is_refused_with_the_settings(text: str) -> None:
    with pytest.raises(ValidationError, match=r"module:Class|at most 256"):
        PolicySettings(create_topic=text)
