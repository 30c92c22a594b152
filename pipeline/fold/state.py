"""The state at a moment from folded tasks: partitions composed, the rest replayed. Spark does it in parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.pipeline.fold.catalogue import Catalogue
from quorate.pipeline.fold.compose import compose
from quorate.pipeline.fold.elements import Elements, joined_elements
from quorate.pipeline.fold.leaves import topic_leaves
from quorate.pipeline.fold.task import FoldedTask
from quorate.pipeline.fold.timeline import Located, Topics, Transactions
from quorate.snapshots.digest import digest_bytes, entry_leaf, root


@dataclass(frozen=True, slots=True)
class FoldedState:
    """A cluster's state."""

    #: By topic id and number, one each.
    partitions: Elements
    catalogue: Catalogue

    def digest(self) -> bytes:
        """As ``snapshots.digest`` defines it."""
        names = {topic_id: topic.name for topic_id, topic in self.catalogue.topics.items()}
        topics = topic_leaves(self.partitions, names)
        return digest_bytes(root([topics, catalogue_leaves(self.catalogue)]))


def catalogue_leaves(catalogue: Catalogue) -> int:
    """The sum of the leaves of all that is no topic."""
    return root(entry_leaf(record) for record in catalogue.entries())


def state_at(tasks: Sequence[FoldedTask], moment: int) -> FoldedState:
    """The state at one of the moments that the tasks were told of.

    Args:
        tasks: of one log from a base or offset 0 on, without gaps, in order.

    Raises:
        FoldRefused: a record that cannot be.
    """
    others = [located for task in tasks for located in task.others]
    transactions = Transactions.of(located for located in others if located.offset < moment)
    counted = transactions.counted(others, moment)
    catalogue = replayed(counted)
    elements = joined_elements([task.elements for task in tasks])
    return FoldedState(compose(elements, Topics(counted), transactions, moment), catalogue)


def replayed(counted: Sequence[Located]) -> Catalogue:
    """The catalogue that some records in order add up to.

    Raises:
        FoldRefused: a record that cannot be.
    """
    catalogue = Catalogue()
    catalogue.apply_all(counted)
    return catalogue
