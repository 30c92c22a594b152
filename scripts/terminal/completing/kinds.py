"""The kinds of names that complete a word: what an option or argument of a command says of its value."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum


class NameKind(StrEnum):
    """A kind of names, written as no word of a command line is: where words may stand it can, too."""

    TOPICS = "<topics>"
    PARTITIONS = "<partitions>"
    BROKERS = "<brokers>"
    CONTROLLERS = "<controllers>"
    #: `broker 12`, `topic orders`: the kind first, and then names of it.
    SUBJECTS = "<subjects>"
    #: `topic/orders`, `broker/12`.
    RESOURCES = "<resources>"
    CONFIGS = "<configs>"
    #: `NAME=`, of which the value is typed.
    SETTINGS = "<settings>"
    CONTEXTS = "<contexts>"
    #: Controllers and brokers of the local cluster, as `broker-11`.
    PROCESSES = "<processes>"


def completed_by(kind: NameKind) -> Callable[[], list[str]]:
    """Give a parameter of a command its completion. It says the kind alone: nobody is asked for names."""
    return lambda: [kind]
