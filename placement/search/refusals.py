"""What each rule of a search removed.

Both phases of a search record here.  Narrowing applies one rule after another to sets of providers; each of them is a
``Refusal``, with the sets before and after it.  Combining looks at one tree after another; a tree without a candidate
is recorded under the constraint that rejected the last partial assignment in it.

Recording costs a tuple for each rule and a dict entry for each tree.  Numbers are counted when they are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from placement.index.forest import Forest
from placement.index.slots import Slots, SlotSet
from placement.search.query.query import AnyOf

#: How many trees are kept as examples for each constraint.
EXAMPLES = 5

#: The obstacle of a search that left trees after narrowing, but combined no candidate in any of them.
COMBINATION = "combination"


class Refusal(NamedTuple):
    """A rule that narrowed, in the words of the query."""

    #: The parameter, with the class for ``resources``; ``group`` for trees in which a demand cannot be supplied.
    rule: str
    #: The suffix of the group; None where the rule is about whole trees.
    suffix: str | None
    before: SlotSet
    after: SlotSet
    forest: Forest
    #: The traits or aggregates that the rule names: a tuple of sets where one name of each is required, a set where all
    #: are forbidden.
    names: AnyOf | frozenset[str] = ()
    #: Whether both sets hold the roots of trees, not providers.
    whole_trees: bool = False

    @property
    def providers(self) -> int:
        """The number of providers that the rule removed."""
        return self.before.count - self.after.count

    @property
    def trees(self) -> int:
        """The number of trees that had providers before the rule and have none after it."""
        roots_of = self.forest.roots_of
        return roots_of(self.before).count - roots_of(self.after).count


@dataclass(slots=True)
class Refusals:
    """The refusals of one search."""

    #: In the order in which the rules were applied.
    narrowing: list[Refusal] = field(default_factory=list)
    #: Trees without a candidate, by the constraint that rejected last in them.
    combining: dict[str, int] = field(default_factory=dict)
    #: The roots of some of these trees, for each constraint.
    examples: dict[str, list[int]] = field(default_factory=dict)

    def refused(self, tree: int, constraint: str) -> None:
        """Record that a tree has no candidate.

        Args:
            tree: The slot of its root.
            constraint: In the words of the query, as ``Refusal.rule``: ``resources:VCPU``, ``group_policy``,
                ``same_subtree``, ``required``.
        """
        count = self.combining[constraint] = self.combining.get(constraint, 0) + 1
        if count <= EXAMPLES:
            self.examples.setdefault(constraint, []).append(tree)

    def all_refused(self, trees: Slots, constraint: str) -> None:
        """Record that each of these trees has no candidate, for the same reason."""
        for tree in trees[:EXAMPLES].tolist():
            self.refused(tree, constraint)
        if len(trees) > EXAMPLES:
            self.combining[constraint] += len(trees) - EXAMPLES

    @property
    def obstacle(self) -> str:
        """The parameter that left no provider; ``combination`` if narrowing left some in every step."""
        return self.rule.partition(":")[0]

    @property
    def rule(self) -> str:
        """The rule that left no provider, with the class for ``resources``; ``combination`` if each left some."""
        return next((refusal.rule for refusal in self.narrowing if not refusal.after), COMBINATION)
