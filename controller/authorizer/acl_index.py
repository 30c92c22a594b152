"""The ACLs of an image by whom they are about: what a decision has to look at, and nothing else.

A decision asks for at most four subjects, the client or everyone from its host or from anywhere, and each of them for
the patterns that cover a name: so it costs the same however many ACLs there are about others. The index of the next
image is made out of this one and of what changed between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from quorate.controller.authorizer.grants import Grant
from quorate.controller.authorizer.patterns import Pattern, PatternMap
from quorate.metadata_log.records.records import AccessControlEntryRecord
from quorate.snapshots.image.image_parts import AclsImage
from quorate.snapshots.maps.persistent_map import PersistentMap

#: In an ACL: every client, whatever the type of its principal.
EVERYONE: Final = "User:*"
#: In an ACL: every host.
ANYWHERE: Final = "*"

#: Resource type, principal and host of ACLs, as they stand there.
Subject = tuple[int, str, str]

_NO_GRANTS: Final[PatternMap[Grant]] = PatternMap()
_NO_COUNTS: Final[PatternMap[int]] = PatternMap()


@dataclass(frozen=True, slots=True)
class AclIndex:
    """The ACLs of one image. Two are equal if their images' ACLs say the same."""

    #: What this is the index of.
    acls: AclsImage = field(default_factory=AclsImage, compare=False)
    _subjects: PersistentMap[Subject, PatternMap[Grant]] = field(default_factory=PersistentMap)
    #: Number of ACLs about anybody, by resource type and pattern.
    _counts: Mapping[int, PatternMap[int]] = field(default_factory=dict)

    def subjects(self, type_id: int, principal: str, host: str) -> list[PatternMap[Grant]]:
        """All that ACLs say of a client, by pattern; a part for each subject that means it.

        Args:
            host: as Java writes it (``hosts.java_host``).
        """
        wanted = [(type_id, who, where) for who in (principal, EVERYONE) for where in (host, ANYWHERE)]
        return [found for found in self._subjects.get_many(wanted) if found is not None]

    def named_subjects(self, type_id: int, principal: str, host: str) -> list[tuple[Subject, PatternMap[Grant]]]:
        """The same with the subjects themselves."""
        wanted = [(type_id, who, where) for who in (principal, EVERYONE) for where in (host, ANYWHERE)]
        found = zip(wanted, self._subjects.get_many(wanted), strict=True)
        return [(subject, patterns) for subject, patterns in found if patterns is not None]

    def is_covered(self, type_id: int, name: str) -> bool:
        """Whether any ACL, whoever it is about, covers a resource."""
        counts = self._counts.get(type_id)
        return counts is not None and bool(counts.covering(name))

    def following(self, acls: AclsImage) -> AclIndex:
        """The index of other ACLs; what both have in common is shared, and costs nothing."""
        if acls is self.acls:
            return self
        before, after = self.acls.entries, acls.entries
        updated, removed = after.changes_since(before)
        taken = [entry for entry in before.get_many(updated | removed) if entry is not None]
        added = [entry for entry in after.get_many(updated) if entry is not None]
        return AclIndex(acls, self._changed_subjects(taken, added), self._changed_counts(taken, added))

    def _changed_subjects(
        self, taken: Iterable[AccessControlEntryRecord], added: Iterable[AccessControlEntryRecord]
    ) -> PersistentMap[Subject, PatternMap[Grant]]:
        changes: dict[Subject, dict[Pattern, Grant]] = {}
        # Whatever comes is there before anything goes: an ACL that only got another id changes nothing on the way.
        for entries, change in ((added, Grant.plus), (taken, Grant.minus)):
            for entry in entries:
                subject, pattern = _subject(entry), _pattern(entry)
                grants = changes.setdefault(subject, {})
                grant = grants.get(pattern)
                if grant is None:
                    grant = (self._subjects.get(subject) or _NO_GRANTS).values.get(pattern) or Grant()
                grants[pattern] = change(grant, entry)
        subjects = {
            subject: (self._subjects.get(subject) or _NO_GRANTS).changed(
                {pattern: None if grant.is_empty else grant for pattern, grant in grants.items()}
            )
            for subject, grants in changes.items()
        }
        return _with(self._subjects, subjects)

    def _changed_counts(
        self, taken: Iterable[AccessControlEntryRecord], added: Iterable[AccessControlEntryRecord]
    ) -> Mapping[int, PatternMap[int]]:
        changes: dict[int, dict[Pattern, int]] = {}
        for entries, step in ((added, 1), (taken, -1)):
            for entry in entries:
                type_id, pattern = entry.resource_type, _pattern(entry)
                counts = changes.setdefault(type_id, {})
                counts[pattern] = counts.get(pattern, 0) + step
        changed = dict(self._counts)
        for type_id, steps in changes.items():
            old = self._counts.get(type_id, _NO_COUNTS)
            new = {pattern: (old.values.get(pattern) or 0) + step for pattern, step in steps.items() if step}
            changed[type_id] = old.changed({pattern: count or None for pattern, count in new.items()})
        return {type_id: counts for type_id, counts in changed.items() if counts.values}


def _with(
    subjects: PersistentMap[Subject, PatternMap[Grant]], changes: Mapping[Subject, PatternMap[Grant]]
) -> PersistentMap[Subject, PatternMap[Grant]]:
    present = {subject: grants for subject, grants in changes.items() if grants.values}
    return subjects.changed(present, [subject for subject in changes if subject not in present])


def _subject(entry: AccessControlEntryRecord) -> Subject:
    return entry.resource_type, entry.principal, entry.host


def _pattern(entry: AccessControlEntryRecord) -> Pattern:
    return entry.pattern_type, entry.resource_name
