"""Java's regular expressions in Python against what ``java.util.regex`` answered (tests/data/README.md)."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quorate.controller.principals.java_patterns import BadJavaPattern, java_pattern
from quorate.controller.principals.java_replacements import replace_all

DATA = Path(__file__).parents[1] / "data" / "java" / "patterns.jsonl.gz"


def differences(row: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each answer about one pattern that Java's was not. One that is refused here has no answers."""
    try:
        pattern = java_pattern(row["pattern"])
    except BadJavaPattern:
        return
    if "refused" in row:
        yield f"{row['pattern']!r} is none of Java's"
        return
    for text, groups, replaced in row["texts"]:
        match = pattern.fullmatch(text)
        if (None if match is None else [match[0], *match.groups()]) != groups:
            yield f"{row['pattern']!r} on {text!r}: {match}, not {groups}"
        # None: Java replaced between the halves of a character, which no text here has.
        if replaced is not None and replace_all(pattern, text, "[$0]") != replaced:
            yield f"{row['pattern']!r} replaced in {text!r}: not {replaced!r}"


def test_java_patterns_that_are_translated_match_and_replace_as_in_java() -> None:
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]

    found = [line for row in rows for line in differences(row)]
    assert not found, "\n".join(found[:20])
    assert sum("texts" in row and is_translated(row["pattern"]) for row in rows) >= 690


def is_translated(pattern: str) -> bool:
    try:
        java_pattern(pattern)
    except BadJavaPattern:
        return False
    return True
