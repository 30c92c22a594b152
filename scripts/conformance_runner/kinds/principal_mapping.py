"""``principal_mapping``: names out of distinguished names by rules, and distinguished names out of certificates."""

from __future__ import annotations

import base64
from typing import Any

from quorate.controller.principals.distinguished_names import name_text
from quorate.controller.principals.java_patterns import BadJavaPattern
from quorate.controller.principals.java_replacements import BadReplacement, NoSuchGroup
from quorate.controller.principals.mapping_rules import (
    DEFAULT_RULES,
    BadMappingRule,
    NoMatchingRule,
    PrincipalMapping,
)
from quorate.scripts.conformance_runner.comparison import differences
from quorate.scripts.conformance_runner.outcome import VectorOutcome
from quorate.scripts.conformance_runner.record_form import Form

#: The original's classes, the narrower of ours first.
_CLASSES = {
    NoMatchingRule: "NoMatchingRule",
    NoSuchGroup: "IndexOutOfBoundsException",
    BadReplacement: "IllegalArgumentException",
    BadMappingRule: "IllegalArgumentException",
    BadJavaPattern: "PatternSyntaxException",
}


def run_vector(vector: Any) -> VectorOutcome:
    """The name, or the class of the exception, about the rules or about the name."""
    given = vector["input"]
    if given["kind"] == "certificate_name":
        got: Form = {"name": name_text(base64.b64decode(given["subject_der"]))}
    else:
        got = _mapped(given["rules"], given["distinguished_name"])
    return VectorOutcome(vector["id"], differences(vector["expected"], got, ignores=("message",)))


def _mapped(rules: str | None, distinguished_name: str) -> Form:
    try:
        mapping = PrincipalMapping(DEFAULT_RULES if rules is None else rules)
    except (BadMappingRule, BadJavaPattern) as error:
        return {"configuration_exception": _exception(error)}
    try:
        return {"name": mapping.name_of(distinguished_name)}
    except (NoMatchingRule, BadReplacement) as error:
        return {"exception": _exception(error)}


def _exception(error: Exception) -> Form:
    return {"class": next(name for kind, name in _CLASSES.items() if isinstance(error, kind))}
