"""An explanation in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from placement.extensions.v1.explain.explanation import Combination, Mistake, Relaxation, Step
from placement.extensions.v1.explain.steps import SHARED
from placement.search.solver.constraints import Isolation, SameSubtree
from placement.search.solver.work_limit import WORK_LIMIT

#: What an inventory has that stands in the way of an amount: after "1", and after a greater number.
_PROPERTIES = {
    "absent": ("has none of it", "have none of it"),
    "total": ("is smaller", "are smaller"),
    "reserved": ("has too much of it reserved", "have too much of it reserved"),
    "used": ("has too little of it free", "have too little of it free"),
    "max_unit": ("allows less at once", "allow less at once"),
    "min_unit": ("allows only more at once", "allow only more at once"),
    "step_size": ("gives it in other steps", "give it in other steps"),
}


def of_found(found: int, limited: bool) -> str:
    """Return the sentence for a query with candidates."""
    verb, more = "is" if found == 1 else "are", " or more" if limited else ""
    return f"There {verb} {_counted(found, 'candidate')}{more}."


def of_obstacle(
    obstacle: Step | None,
    combinations: Sequence[Combination],
    relaxations: Sequence[Relaxation],
    mistakes: Sequence[Mistake],
) -> str:
    """Return the sentence for a query without candidates: which rule is the obstacle, and what would be enough."""
    reason = _of_step(obstacle) if obstacle is not None else _of_combinations(combinations)
    return f"{reason}{_enough(relaxations, mistakes)}."


def _of_step(step: Step) -> str:
    before = _counted(step.before.providers, "provider")
    if not step.before.providers:
        return f"There is no provider left for {step.parameter}"
    if step.amounts is None:
        if step.rule == "group":
            return f"None of {_counted(step.before.trees, 'remaining tree')} has a provider for {step.parameter}"
        return f"{step.parameter} leaves none of {before}"
    name = step.amounts.resource_class
    most = f"the most {name} that one could give is {step.amounts.most:,}"
    # That a provider has nothing of a class is an answer only where it holds for all of them.
    blocked_by = step.amounts.blocked_by.items()
    why, count = max(blocked_by, key=lambda item: (item[0] != "absent", item[1]), default=(None, 0))
    if why is None:
        return f"{step.parameter} fits at none of {before}: {most}"
    return f"{step.parameter} fits at none of {before}: {count:,} {_PROPERTIES[why][count != 1]}, and {most}"


def _of_combinations(combinations: Sequence[Combination]) -> str:
    if not combinations:
        return "No tree was searched to the end"
    first = combinations[0]
    trees = _counted(first.trees, "tree")
    if first.rule == WORK_LIMIT:
        return f"{trees} could not be searched to the end"
    if first.rule == SHARED:
        return f"{trees} have only sharing providers in common"
    reasons = {
        Isolation.name: "the groups need different providers",
        SameSubtree.name: "the groups need a common subtree",
        "resources": "the amounts add up to more than one provider has",
        "required": "the providers that fit do not have the traits together",
    }
    why = reasons.get(first.rule, first.rule)
    return (
        f"Each demand could be supplied by itself, but not together in {trees}: {first.parameter or first.rule}, {why}"
    )


def _enough(relaxations: Sequence[Relaxation], mistakes: Sequence[Mistake]) -> str:
    """Return the smallest change that gives candidates, as the end of the sentence."""
    if relaxations:
        first = relaxations[0]
        number = f"{first.found:,} or more candidates" if first.limited else _counted(first.found, "candidate")
        return f"; {first.text} there would be {number}"
    if mistakes:
        return f"; {mistakes[0].text[0].lower()}{mistakes[0].text[1:].rstrip('.')}"
    return "; no single change of the request would be enough"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
