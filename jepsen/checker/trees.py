"""Check of provider trees: no cycles, one root, and each acknowledged provider in the tree of its parent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs

from jepsen.checker.registers import Register, Write
from jepsen.history import History, Operation
from jepsen.violation import Violation

#: Value of a provider's register while the provider does not exist; else the uuid of its parent, None for a root.
ABSENT = "absent"
_UNCHANGED = object()


@dataclass(frozen=True, slots=True)
class ShownProvider:
    """A provider in the response to a read."""

    uuid: str
    parent: str | None
    root: str


def trees(history: History) -> list[Violation]:
    """Return violations by reads of trees, and by the final state, that no order of the writes explains."""
    parents = _registers(history)
    violations = []
    for operation in history.operations:
        providers = _shown_providers(operation)
        if providers is None or operation.ended is None:
            continue
        sentences = [*_roots(providers), *_parents(providers, parents, operation.began, operation.ended)]
        if (named_provider := _named_tree(operation)) is not None:
            sentences += [
                *_one_tree(providers, named_provider),
                *_acknowledged_children(providers, parents, operation.began, operation.ended),
            ]
        violations += [
            Violation(name, f"{operation.path}: {sentence}", (operation.number,)) for name, sentence in sentences
        ]
    for _, sentence in _roots(_final_providers(history)):
        violations.append(Violation("trees without cycles, with correct roots", f"final state: {sentence}"))
    return violations


# --- rules: pairs of an invariant and the error ----------------------------------------------------------------------

Findings = Iterator[tuple[str, str]]


def _roots(providers: Sequence[ShownProvider]) -> Findings:
    """Yield an error for each provider whose shown chain of parents has a cycle or leads to another root."""
    rule = "trees without cycles, with correct roots"
    by_uuid = {provider.uuid: provider for provider in providers}
    for provider in providers:
        path = [provider]
        while (parent := by_uuid.get(path[-1].parent or "")) is not None:
            if parent in path:
                yield rule, f"{provider.uuid} is in a cycle: {' '.join(member.uuid for member in path)}"
                break
            path.append(parent)
        else:
            top = path[-1]
            if top.parent is None and provider.root != top.uuid:
                yield rule, f"{provider.uuid} has root {provider.root}, but its parents lead to {top.uuid}"
            if top.parent is not None and provider.root != top.root:
                yield rule, f"{provider.uuid} has root {provider.root}, but its ancestor {top.uuid} has {top.root}"


def _one_tree(providers: Sequence[ShownProvider], named_provider: str) -> Findings:
    """Yield an error unless a read of a tree shows the named provider, one root, and the parents of all others."""
    rule = "a read shows one tree"
    uuids = {provider.uuid for provider in providers}
    if providers and named_provider not in uuids:
        yield rule, f"{named_provider} is missing"
    if len({provider.root for provider in providers}) > 1:
        yield rule, f"several roots: {sorted({provider.root for provider in providers})}"
    for provider in providers:
        if provider.parent is not None and provider.parent not in uuids:
            yield rule, f"{provider.uuid} is shown, but its parent {provider.parent} is missing"


def _parents(
    providers: Sequence[ShownProvider], parents: Mapping[str, Register[Any]], began: float, ended: float
) -> Findings:
    """Yield an error for each provider with a parent that no possible write has set."""
    for provider in providers:
        if provider.uuid in parents:
            possible = {write.value for write in parents[provider.uuid].possible(began, ended)}
            if provider.parent not in possible:
                yield "parents as written", f"{provider.uuid} has parent {provider.parent}, expected {_names(possible)}"


def _acknowledged_children(
    providers: Sequence[ShownProvider], parents: Mapping[str, Register[Any]], began: float, ended: float
) -> Findings:
    """Yield an error for each child that is missing, although its write was acknowledged and its parent is shown."""
    uuids = {provider.uuid for provider in providers}
    for uuid, register in parents.items():
        possible = {write.value for write in register.possible(began, ended)}
        if uuid not in uuids and len(possible) == 1 and possible & uuids:
            yield "acknowledged children included", f"{uuid} is missing, but its parent {_names(possible)} is shown"


# --- history ---------------------------------------------------------------------------------------------------------


def _registers(history: History) -> dict[str, Register[Any]]:
    """Return the register of the parent of each provider that the history creates."""
    writes: dict[str, list[Write[Any]]] = defaultdict(list)
    created = set()
    for operation in history.operations:
        if not (operation.succeeded or operation.is_open) or (write := _parent_write(operation)) is None:
            continue
        uuid, parent = write
        if parent is not _UNCHANGED:
            writes[uuid].append(Write(operation.began, operation.ended, parent, operation.number))
        if operation.method == "POST":
            created.add(uuid)
    return {uuid: Register(ABSENT, writes[uuid], history.events) for uuid in created}


def _parent_write(operation: Operation) -> tuple[str, Any] | None:
    path = operation.path.strip("/").split("/")
    match operation.method, path:
        case "POST", ["resource_providers"] if "uuid" in operation.body:
            return operation.body["uuid"], operation.body.get("parent_provider_uuid")
        case "PUT", ["resource_providers", uuid]:
            return uuid, operation.body.get("parent_provider_uuid", _UNCHANGED)
        case "DELETE", ["resource_providers", uuid]:
            return uuid, ABSENT
    return None


def _shown_providers(operation: Operation) -> list[ShownProvider] | None:
    """Return the providers that a read shows with their parents; None for other operations."""
    path = operation.path.partition("?")[0].strip("/").split("/")
    if operation.method != "GET" or operation.status != 200:
        return None
    match path:
        case ["resource_providers"]:
            return _placement_providers(operation.reply["resource_providers"])
        case ["resource_providers", _]:
            return _placement_providers([operation.reply])
        case ["v1", "overview"]:
            return [
                ShownProvider(entry["uuid"], (entry["parent"] or {}).get("uuid"), entry["root"]["uuid"])
                for entry in operation.reply["providers"]
            ]
    return None


def _placement_providers(entries: Iterable[Mapping[str, Any]]) -> list[ShownProvider] | None:
    """Return the providers in a response of the Placement API; None before version 1.14, which shows no trees."""
    return [
        ShownProvider(entry["uuid"], entry["parent_provider_uuid"], entry["root_provider_uuid"])
        for entry in entries
        if "root_provider_uuid" in entry
    ] or None


def _named_tree(operation: Operation) -> str | None:
    """Return the uuid of the provider whose tree is requested, if that is the only condition."""
    path, _, query = operation.path.partition("?")
    parameters = parse_qs(query)
    [name] = {"/resource_providers": ["in_tree"], "/v1/overview": ["root"]}.get(path, [""])
    return parameters[name][0] if parameters.keys() == {name} else None


def _final_providers(history: History) -> list[ShownProvider]:
    rows = history.final.get("providers", ())
    uuids = {id_: uuid for id_, uuid, *_ in rows}
    return [ShownProvider(uuid, uuids.get(parent), uuids.get(root, str(root))) for _, uuid, _, parent, root in rows]


def _names(possible: Iterable[Any]) -> str:
    return " or ".join(sorted(map(str, possible)))
