"""Records of the providers and trees that each rule of a search removed.

Narrowing records each rule that it applies as a ``Refusal``, with the sets before and after it.  Combining counts each
tree without a candidate for the constraint that refused last at the greatest depth of the tree's search.

Recording costs a tuple per rule and a dict update per tree; providers and trees are counted only on access.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from placement.index.forest import Forest
from placement.index.slots import Slots, SlotSet
from placement.search.query.query import AnyOf

#: Maximum number of trees kept as examples, per constraint.
EXAMPLES = 5

#: The obstacle of a search without candidates whose narrowing left trees.
COMBINATION = "combination"


class Refusal(NamedTuple):
    """A rule of narrowing, in the terms of the query, and its effect."""

    #: The parameter, with the class for ``resources``; ``group`` if it removed trees that cannot supply a demand.
    rule: str
    #: The suffix of the group; None for a rule about whole trees.
    suffix: str | None
    before: SlotSet
    after: SlotSet
    forest: Forest
    #: The traits or aggregates of the rule: sets of alternatives in a tuple, or forbidden names in a set.
    names: AnyOf | frozenset[str] = ()
    #: Whether both sets contain roots of trees, rather than providers.
    whole_trees: bool = False

    @property
    def providers(self) -> int:
        """The number of providers that the rule removed."""
        return self.before.count - self.after.count

    @property
    def trees(self) -> int:
        """The number of trees from which the rule removed all providers."""
        roots_of = self.forest.roots_of
        return roots_of(self.before).count - roots_of(self.after).count


@dataclass(slots=True)
class Refusals:
    """The refusals of one search."""

    #: Refusals in the order of the rules.
    narrowing: list[Refusal] = field(default_factory=list)
    #: Number of trees without a candidate, by the constraint that refused.
    combining: dict[str, int] = field(default_factory=dict)
    #: Roots of some of these trees, by constraint.
    examples: dict[str, list[int]] = field(default_factory=dict)

    def record_refusal(self, tree: int, constraint: str) -> None:
        """Record that a tree has no candidate.

        Args:
            tree: The slot of its root.
            constraint: The constraint in the terms of the query, as in ``Refusal.rule``: ``resources:VCPU``,
                ``group_policy``, ``same_subtree``, ``required``.
        """
        count = self.combining[constraint] = self.combining.get(constraint, 0) + 1
        if count <= EXAMPLES:
            self.examples.setdefault(constraint, []).append(tree)

    def record_refusals(self, trees: Slots, constraint: str) -> None:
        """Record that each of these trees has no candidate, for the same reason."""
        for tree in trees[:EXAMPLES].tolist():
            self.record_refusal(tree, constraint)
        if len(trees) > EXAMPLES:
            self.combining[constraint] += len(trees) - EXAMPLES

    @property
    def obstacle(self) -> str:
        """The reason for the lack of candidates: ``rule`` without the class."""
        return self.rule.partition(":")[0]

    @property
    def rule(self) -> str:
        """The rule that left no provider, with the class for ``resources``; ``combination`` without such a rule."""
        return next((refusal.rule for refusal in self.narrowing if not refusal.after), COMBINATION)
