"""Trees of providers, as far as the operations of a history determine them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from jepsen.history import History

#: Trait of sharing providers, whose inventories consumers of other trees use.
_SHARES = "MISC_SHARES_VIA_AGGREGATE"


def roots(history: History) -> Mapping[str, str]:
    """Return the roots by provider, for providers that always had one parent and never shared anything."""
    parents: dict[str, set[str | None]] = defaultdict(set)
    sharing = set()
    for operation in history.operations:
        if not (operation.succeeded or operation.is_open):
            continue
        match operation.method, operation.path.strip("/").split("/"):
            case "POST", ["resource_providers"] if "uuid" in operation.body:
                parents[operation.body["uuid"]].add(operation.body.get("parent_provider_uuid"))
            case "PUT", ["resource_providers", provider] if "parent_provider_uuid" in operation.body:
                parents[provider].add(operation.body["parent_provider_uuid"])
            case "PUT", ["resource_providers", provider, "traits"] if _SHARES in operation.body["traits"]:
                sharing.add(provider)
    certain = {provider: next(iter(possible)) for provider, possible in parents.items() if len(possible) == 1}
    root_of = {provider: _root(provider, certain) for provider in certain.keys() - sharing}
    return {provider: root for provider, root in root_of.items() if root is not None}


def _root(provider: str, parents: Mapping[str, str | None]) -> str | None:
    """Return the root of a provider; None if the parent of an ancestor is uncertain."""
    for _ in parents:
        if provider not in parents:
            break
        parent = parents[provider]
        if parent is None:
            return provider
        provider = parent
    return None
