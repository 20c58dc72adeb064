"""An explanation in two sentences: the obstacle, and the smallest change that helps (docs: explain-sentences)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from placement.extensions.v1.explain.explanation import Combination, Mistake, Relaxation, Shortfall, Step
from placement.search.solver.constraints import Isolation, RequiredTraits, SameSubtree
from placement.search.solver.work_limit import WORK_LIMIT

NO_PROVIDERS = "There are no providers."

#: Reasons that keep an inventory from supplying an amount: the predicate for one inventory, and for several.
PROPERTIES = {
    "total": ("is too small", "are too small"),
    "reserved": ("has too much reserved", "have too much reserved"),
    "used": ("has too little free capacity", "have too little free capacity"),
    "max_unit": ("has a max_unit below this amount", "have a max_unit below this amount"),
    "min_unit": ("has a min_unit above this amount", "have a min_unit above this amount"),
    "step_size": (
        "has a step_size that does not divide this amount",
        "have a step_size that does not divide this amount",
    ),
}
#: Reasons that keep demands from being supplied together, by rule; ``{}`` is the part of the query.
TOGETHER = {
    Isolation.name: "there are not enough different providers for {}",
    SameSubtree.name: "{} requires the provider of one group to be at or above the providers of the others",
    "resources": "no provider has room for {} together",
    RequiredTraits.name: "the providers that fit do not have all traits of {} between them",
}

#: Kinds of mistakes about a name that matches no provider.
_UNMET = ("resource_class", "trait", "aggregate", "in_tree")


def of_found(count: int, limited: bool) -> str:
    """Return the sentence for a query with candidates."""
    return f"There {'is' if count == 1 else 'are'} {_candidates(count, limited)}."


def of_obstacle(
    stopped_at: Step | None,
    combinations: Sequence[Combination],
    relaxations: Sequence[Relaxation],
    mistakes: Sequence[Mistake],
    complete: bool,
) -> str:
    """Return the sentences for a query without candidates.

    Args:
        stopped_at: The step that left no provider or tree; None if only combining the demands failed.
        complete: Whether all changes were tried within the budget.
    """
    about = stopped_at.parameter if stopped_at is not None else ""
    unmet = _mistaken_name(about, mistakes)
    if unmet is not None:
        reason = unmet.text.removesuffix(".")
        mistakes = [mistake for mistake in mistakes if mistake is not unmet]
    else:
        reason = _of_step(stopped_at) if stopped_at is not None else _of_combinations(combinations)
    # Mistakes in the part of the query that is the obstacle come first.
    nearest = sorted(mistakes, key=lambda mistake: mistake.subject not in about)
    return f"{reason}. {_remedy(relaxations, nearest, complete)}"


def _mistaken_name(parameter: str, mistakes: Sequence[Mistake]) -> Mistake | None:
    """Return the mistake about a name that the parameter requires; None if it forbids names or lists alternatives."""
    if "!" in parameter or "in:" in parameter:
        return None
    names = re.findall(r"[\w-]+", parameter)
    return next((mistake for mistake in mistakes if mistake.kind in _UNMET and mistake.subject in names), None)


def _of_step(step: Step) -> str:
    if step.avoided:
        count = step.before.trees
        avoided = "the only remaining tree" if count == 1 else f"all {count:,} remaining trees"
        return f"The service avoids {avoided}, as if the request had {step.parameter}"
    if step.amounts is not None:
        return _of_amount(step.before.providers, step.amounts)
    if step.rule == "group":
        trees = step.before.trees
        where = "the only remaining tree" if trees == 1 else f"any of the {trees:,} remaining trees"
        return f"No provider can supply {step.parameter} in {where}"
    number, noun = (step.before.trees, "tree") if step.whole_trees else (step.before.providers, "provider")
    return _none_clause(number, noun, f"meets {step.parameter}", f"does not meet {step.parameter}")


def _of_amount(providers: int, amounts: Shortfall) -> str:
    name, amount = amounts.resource_class, f"{amounts.amount:,} {amounts.resource_class}"
    blocked_by = {obstacle: count for obstacle, count in amounts.blocked_by.items() if obstacle != "absent"}
    if not blocked_by:
        return _none_clause(providers, "provider", f"has any {name}", f"has no {name}")
    # Most trees have providers without the class, which explains nothing: the other providers show the reason.
    obstacle, count = max(blocked_by.items(), key=lambda item: item[1])
    lone = providers == 1
    reason = f"{'it' if lone else f'{count:,}'} {PROPERTIES[obstacle][count != 1]}"
    if not amounts.most:
        predicate = " and has no room" if lone else ", and none has room"
        reason += f"{predicate} for any {name} at present"
    elif amounts.most < amounts.amount:
        limit = " and can supply at most" if lone else ", and none can supply more than"
        reason += f"{limit} {amounts.most:,}"
    return f"{_none_clause(providers, 'provider', f'can supply {amount}', f'cannot supply {amount}')}: {reason}"


def _none_clause(number: int, noun: str, positive: str, negative: str) -> str:
    """Return the clause for a rule that no remaining provider or tree meets."""
    return (
        f"The only remaining {noun} {negative}"
        if number == 1
        else f"None of the {number:,} remaining {noun}s {positive}"
    )


def _of_combinations(combinations: Sequence[Combination]) -> str:
    if not combinations or combinations[0].rule == WORK_LIMIT:
        return "The search ended before it could rule out every tree"
    first = combinations[0]
    where = "In the only remaining tree" if first.trees == 1 else f"In {first.trees:,} trees"
    return f"{where}, each part of the request has a provider, but {TOGETHER[first.rule].format(first.parameter)}"


def _remedy(relaxations: Sequence[Relaxation], mistakes: Sequence[Mistake], complete: bool) -> str:
    if relaxations:
        first = relaxations[0]
        return f"{first.text[0].upper()}{first.text[1:]}, there would be {_candidates(first.found, first.limited)}."
    if mistakes:
        return mistakes[0].text
    if complete:
        return "None of the changes tried (up to three conditions at once) would be enough."
    return "The search ended before it found a change that would be enough."


def _candidates(count: int, limited: bool) -> str:
    return f"{'at least ' if limited else ''}{count:,} candidate{'' if count == 1 else 's'}"
