"""The comparison of an explanation with the results of brute force (docs: v1-explain)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

from placement.extensions.v1.explain.explanation import Explanation, Missing, NearMiss, Relaxation, Shortfall
from placement.extensions.v1.query_text import query_string
from placement.search.query.query import SearchQuery
from tests.search import changes
from tests.search.changes import Condition
from tests.search.explanation_oracle import COUNTED, Change, Expected, impossible_together, mistakes
from tests.search.narrowing_oracle import Narrowing, count_blocked, largest_amount
from tests.world import World

#: Maximum number of counted candidates of a relaxation.
COUNTED_RELAXED = 100
#: Maximum numbers of relaxations, near misses, and examples of trees.
RELAXATIONS, NEAR_MISSES, EXAMPLES = 20, 3, 5
#: The rules that reject combinations, and the rules that are only counted with them.
COMBINING = ("group_policy", "same_subtree", "resources", "required")
OTHERS = ("shared", "work limit")


def judge(
    world: World, query: SearchQuery, explanation: Explanation, unknown: frozenset[str] = frozenset()
) -> list[str]:
    """Return the faults of an explanation, as sentences; none if it agrees with the documents.

    Args:
        unknown: The traits that do not exist.
    """
    expected = Expected(world, query, unknown)
    judges = (judge_found, judge_steps, judge_obstacle, judge_combinations, judge_mistakes)
    faults = [fault for check in judges for fault in check(expected, explanation)]
    if expected.number:
        reasons = (explanation.obstacle, *explanation.relaxations, *explanation.near_misses)
        return [*faults, *(["explained: there are candidates"] if any(reasons) else [])]
    return [*faults, *judge_relaxations(expected, explanation), *judge_near_misses(expected, explanation)]


# --- the number of candidates ---


def judge_found(expected: Expected, explanation: Explanation) -> Iterator[str]:
    bound = min(COUNTED, expected.query.limit or COUNTED)
    if fault := wrong_number(explanation.found, explanation.limited, expected.number, bound):
        yield f"found: {fault}"
    if not explanation.complete and expected.few_changes_help:
        yield "complete: the budget was not enough"


def wrong_number(counted: int, limited: bool, number: int, bound: int) -> str | None:
    """Return the fault of a number of candidates, or None; a number equal to the bound may be limited or not."""
    if counted == min(number, bound) and (limited == (number > bound) or number == bound):
        return None
    return f"{counted}, limited: {limited}, in place of {number}, bounded by {bound}"


# --- steps ---


def judge_steps(expected: Expected, explanation: Explanation) -> Iterator[str]:
    expected_steps = list(Narrowing(expected.world, expected.query).steps())
    if [(step.rule, step.group) for step in explanation.steps] != [
        (expected_step.rule, expected_step.group) for expected_step in expected_steps
    ]:
        yield f"steps: {explanation.steps} in place of {expected_steps}"
        return
    for step, expected_step in zip(explanation.steps, expected_steps, strict=True):
        removed = frozenset(names_of(explanation, step.removed))
        if (tuple(step.before), tuple(step.after)) != (expected_step.before, expected_step.after):
            yield f"steps: {step} in place of {expected_step}"
        if not removed <= expected_step.removed or len(removed) != min(EXAMPLES, len(expected_step.removed)):
            yield f"steps: {removed} are removed in place of {expected_step.removed}"
        amounts = None
        if expected_step.amount is not None:
            class_, amount, before = expected_step.amount
            blocked_by = count_blocked(expected.world, class_, amount, expected_step.removed)
            amounts = Shortfall(class_, amount, blocked_by, largest_amount(expected.world, class_, before))
        if step.amounts != amounts:
            yield f"steps: {step.amounts} in place of {amounts}"


# --- the obstacle ---


def judge_obstacle(expected: Expected, explanation: Explanation) -> Iterator[str]:
    if expected.number:
        return
    narrowed, obstacle = expected.narrowing, explanation.obstacle
    if not expected.world.members:
        if obstacle is None or obstacle[0] != "no providers":
            yield f"obstacle: {obstacle} in an empty cloud"
    elif narrowed.obstacle is not None:
        if obstacle != narrowed.obstacle:
            yield f"obstacle: {obstacle} in place of {narrowed.obstacle}"
    elif obstacle is None or obstacle[0] not in COMBINING:
        yield f"obstacle: {obstacle} rejects no combination"
    else:
        yield from _judge_combining(expected, explanation, obstacle[0])


def _judge_combining(expected: Expected, explanation: Explanation, rule: str) -> Iterator[str]:
    """Check that a rule is the obstacle in at least one of the trees for which the explanation names it."""
    trees = {
        root
        for combination in explanation.combinations
        if combination.rule == rule
        for root in names_of(explanation, combination.examples)
    }
    violations = [expected.violations(root) for root in trees & expected.narrowing.roots]
    if not any(rule in rules for rule_sets in violations for rules in rule_sets):
        yield f"obstacle: {rule} rejects no combination"
    elif not any(rule in rules for rule_sets in violations for rules in smallest_sets(rule_sets)):
        yield f"obstacle: {rule} is not in the way: whatever else is left out, without it there are no more candidates"


def smallest_sets(sets: frozenset[frozenset[str]]) -> list[frozenset[str]]:
    """Return the minimal sets."""
    return [rules for rules in sets if not any(other < rules for other in sets)]


def judge_combinations(expected: Expected, explanation: Explanation) -> Iterator[str]:
    if expected.number:
        return
    counted, roots = sum(combination.trees for combination in explanation.combinations), expected.narrowing.roots
    if counted != len(roots):
        yield f"combinations: of {counted} trees in place of {len(roots)}"
    for combination in explanation.combinations:
        examples = names_of(explanation, combination.examples)
        if combination.rule not in (*COMBINING, *OTHERS) or not {*examples} <= roots:
            yield f"combinations: {combination.rule} has other trees: {examples}"
        if len(examples) != min(EXAMPLES, combination.trees):
            yield f"combinations: {combination.rule} has {len(examples)} examples of {combination.trees} trees"


def names_of(explanation: Explanation, slots: Iterable[int]) -> list[str]:
    return [explanation.snapshot.provider(slot).uuid for slot in slots]


# --- relaxations ---


def judge_relaxations(expected: Expected, explanation: Explanation) -> Iterator[str]:
    relaxations, ways_of = explanation.relaxations, ways_by_key(expected)
    keys = [expected.key_as_written(relaxation.query) for relaxation in relaxations]
    for number, relaxation in enumerate(relaxations):
        if keys[number] in keys[:number]:
            yield f"relaxation: shown twice: {relaxation.text}"
        if ways := ways_of.get(expected.key(relaxation.query)):
            yield from _judge_relaxation(expected, relaxation, ways)
        elif explanation.complete or relaxation.kind != "several" or not expected.trials.trees(relaxation.query):
            # Amounts are raised while the budget lasts.
            helps = "helps" if expected.trials.trees(relaxation.query) else "does not help"
            yield f"relaxation: {relaxation.kind} is not expected: {relaxation.text}; it {helps}"
    if len(relaxations) > RELAXATIONS:
        yield f"relaxation: {len(relaxations)} are shown"
    yield from _judge_order(expected, relaxations, ways_of)
    if explanation.complete:
        yield from _judge_completeness(expected, relaxations)


def ways_by_key(expected: Expected) -> dict[str, list[Change]]:
    """Return the changes that lead to each query, in the order in which they must be shown."""
    ways: dict[str, list[Change]] = {}
    for change in [*expected.singles, *expected.other_aggregates, *itertools.chain(*expected.several)]:
        ways.setdefault(expected.key(change.query), []).append(change)
    return {key: sorted(alternatives, key=lambda way: (way.size, way.place)) for key, alternatives in ways.items()}


def _judge_completeness(expected: Expected, relaxations: tuple[Relaxation, ...]) -> Iterator[str]:
    keys = {expected.key(relaxation.query) for relaxation in relaxations}
    last_size = relaxations[-1].size if len(relaxations) >= RELAXATIONS else 100
    for ways in [[change] for change in expected.singles] + expected.several:
        if ways[0].size < last_size and not any(expected.key(change.query) in keys for change in ways):
            texts = [change.text or query_string(change.query) for change in ways]
            yield f"relaxation: {ways[0].kind} is missing: {' or '.join(texts)}"


def _judge_relaxation(expected: Expected, relaxation: Relaxation, ways: list[Change]) -> Iterator[str]:
    if not can_be_sent(relaxation.query, expected.unknown):
        yield f"relaxation: can't be sent: {query_string(relaxation.query)}"
    matching = [way for way in ways if way.kind == relaxation.kind and abs(way.size - relaxation.size) < 1e-6]
    if not matching or matching[0].size > ways[0].size:
        yield f"relaxation: {(relaxation.kind, relaxation.size)} in place of {[(way.kind, way.size) for way in ways]}"
    elif not any(parameters_of(relaxation.parameter) >= parameters(way) for way in matching):
        yield f"relaxation: parameter: {relaxation.parameter} in place of {sorted(parameters(matching[0]))}"
    elif not any(way.text in (None, relaxation.text) for way in matching):
        yield f"relaxation: text: {relaxation.text} in place of {matching[0].text}"
    bound = min(COUNTED_RELAXED, expected.query.limit or COUNTED_RELAXED)
    number = expected.trials.number(ways[0].query, bound + 1)
    if fault := wrong_number(relaxation.found, relaxation.limited, number, bound):
        yield f"relaxation: found {fault}: {relaxation.text}"


def can_be_sent(query: SearchQuery, unknown: frozenset[str]) -> bool:
    """Whether a search accepts a query: it names nothing unknown."""
    return changes.can_be_sent(query) and not query.trait_names & unknown


def parameters(change: Change) -> set[str]:
    return {condition.parameter for condition in change.conditions}


def parameters_of(text: str) -> set[str]:
    """Return the conditions of part of the request: for ``required=T0,!T1`` both of them."""
    conditions = set()
    for name, _, value in (part.partition("=") for part in text.split("&")):
        if value.startswith("!in:"):
            values = [f"!{item}" for item in value.removeprefix("!in:").split(",")]
        else:
            values = [value] if name == "same_subtree" or value.startswith("in:") else value.split(",")
        conditions |= {f"{name}={item}" for item in values}
    return conditions


def _judge_order(
    expected: Expected, relaxations: tuple[Relaxation, ...], ways_of: dict[str, list[Change]]
) -> Iterator[str]:
    """Check that smaller changes come first, and equal ones in the order of the request."""
    for earlier, later in itertools.pairwise(relaxations):
        if earlier.size > later.size + 1e-6:
            yield f"relaxation: order: {earlier.text} ({earlier.size}) before {later.text} ({later.size})"
        ways = [ways_of.get(expected.key(relaxation.query)) for relaxation in (earlier, later)]
        if abs(earlier.size - later.size) < 1e-6 and all(ways) and _precedes(ways[1], ways[0]):
            yield f"relaxation: order: {earlier.text} before {later.text}, of equal sizes"


def _precedes(ways: list[Change], others: list[Change]) -> bool:
    """Whether each of the changes that lead to one query comes before each of those that lead to another."""
    return all(before(way.place, other.place) for way in ways for other in others)


def before(places: Iterable[changes.Place], others: Iterable[changes.Place]) -> bool:
    """Whether some places come before others; forbidden names have no order among themselves."""
    for first, second in zip(places, others, strict=False):
        if first[:2] != second[:2]:
            return first[:2] < second[:2]
        if first != second:
            return first[2] < second[2] and first[2] >= 0
    return False


# --- near misses ---


def judge_near_misses(expected: Expected, explanation: Explanation) -> Iterator[str]:
    near_misses = explanation.near_misses
    roots = [names_of(explanation, [near.root])[0] for near in near_misses]
    order = list(expected.trials.roots)
    if expected.nearest:
        ranked = sorted(
            expected.nearest, key=lambda root: (round(expected.nearest[root][0].size, 6), order.index(root))
        )
        ways = {root: [change.query for change in changes] for root, changes in expected.nearest.items()}
    else:
        queries_of_several = [
            relaxation.query for relaxation in explanation.relaxations if relaxation.kind == "several"
        ]
        helped = [(query, expected.trials.trees(query)) for query in queries_of_several]
        ways = {root: [query for query, trees in helped if root in trees] for root in order}
        ranked = [root for root in order if ways[root]]
    if roots != ranked[:NEAR_MISSES] and explanation.complete:
        sizes = {root: round(root_changes[0].size, 3) for root, root_changes in expected.nearest.items()}
        yield f"near misses: {roots} in place of {ranked[:NEAR_MISSES]}, of sizes {sizes}"
    for root, near in zip(roots, near_misses, strict=True):
        if expected.key(near.query) not in {expected.key(query) for query in ways.get(root, ())}:
            smallest = [query_string(query) for query in ways.get(root, ())]
            yield f"near miss: {root}: {query_string(near.query)} in place of one of {smallest}"
        else:
            yield from _judge_missing(expected, near, root)


def _judge_missing(expected: Expected, near: NearMiss, root: str) -> Iterator[str]:
    """Check that the changed conditions are listed as missing, and no others."""
    if not can_be_sent(near.query, expected.unknown):
        yield f"near miss: can't be sent: {query_string(near.query)}"
    key = expected.key(near.query)
    all_changes = [*itertools.chain(*expected.nearest.values()), *itertools.chain(*expected.several)]
    ways = [change for change in all_changes if expected.key(change.query) == key]
    named_parameters = frozenset().union(*(parameters_of(missing.parameter) for missing in near.missing))
    if not near.missing or (ways and not any(parameters(way) <= named_parameters | {""} for way in ways)):
        expected_parameters = [sorted(parameters(way)) for way in ways]
        yield f"near miss: {root}: {sorted(named_parameters)} are missing in place of {expected_parameters}"
    kept_parameters = {condition.parameter for condition in changes.conditions(near.query)}
    changed_parameters = {item.parameter for item in expected.conditions if not item.of_all_groups}
    changed_parameters -= kept_parameters | {
        item.parameter for item in expected.conditions if item.names & expected.unknown
    }
    unnamed = changed_parameters - named_parameters
    if unnamed and not any(way.kind == "spread" for way in ways):
        yield f"near miss: {root}: missing does not name what is changed: {sorted(unnamed)}"
    if unchanged := named_parameters & kept_parameters:
        yield f"near miss: {root}: missing names what is not changed: {sorted(unchanged)}"
    by_parameter = {condition.parameter: condition for condition in expected.conditions}
    for missing in near.missing:
        condition = by_parameter.get(missing.parameter)
        if condition is not None:
            yield from _judge_amount(missing, condition, near.query)


def _judge_amount(missing: Missing, condition: Condition, query: SearchQuery) -> Iterator[str]:
    if condition.kind != "amount":
        if (missing.needed, missing.available) != (None, None):
            yield f"near miss: amounts of a condition without any: {missing}"
        return
    if missing.needed != condition.amount:
        yield f"near miss: {missing.needed} needed in place of {condition.amount}"
    amounts = [
        group.resources.get(condition.resource_class or "", 0)
        for group in query.groups
        if group.suffix == condition.suffix
    ]
    amount = amounts[0] if amounts else 0
    if amount < condition.amount and (missing.available is None or missing.available >= condition.amount):
        yield f"near miss: {missing.parameter} is changed, and {missing.available} of it are available"


# --- mistakes ---


def judge_mistakes(expected: Expected, explanation: Explanation) -> Iterator[str]:
    expected_mistakes = list(mistakes(expected))
    for kind, names in expected_mistakes:
        if not any(mistake.kind == kind and words_of(mistake.text) & names for mistake in explanation.mistakes):
            yield f"mistake: {kind} is missing: {sorted(names)}"
    for mistake in explanation.mistakes:
        expected_names = frozenset().union(*(names for kind, names in expected_mistakes if kind == mistake.kind))
        if mistake.kind == "same_subtree":
            if expected.number:
                yield f"mistake: there are candidates: {mistake.text}"
        elif not words_of(mistake.text) & expected_names and not impossible_together(expected, mistake.text):
            yield f"mistake: {mistake.kind} is not expected: {mistake.text}"
    texts = [mistake.text for mistake in explanation.mistakes]
    if len(texts) > len(set(texts)):
        yield f"mistake: named twice: {texts}"


def words_of(text: str) -> frozenset[str]:
    """Return the names and parameters in a sentence."""
    return frozenset(word.rstrip(":") for word in re.findall(r"[\w=:!-]+", text))
