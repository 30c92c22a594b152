"""The program of docs/policies.md."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "docs" / "policies.md"


def house_rules() -> str:
    """The text of its ``house_rules.py``."""
    return re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)[0]  # type: ignore[no-any-return]
