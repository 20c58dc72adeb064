"""What is asked of the search: groups of resources and rules, without versions, text or numbers of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

#: The suffix of the one group whose resources may come from several providers.
UNSUFFIXED = ""

#: Sets of which one member each must be met, all sets together: (A or B) and (C).
AnyOf = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class Group:
    """Resources that belong together, and what is asked of the provider, or providers, that give them.

    Under a suffix, one provider gives everything and meets every rule by itself.  The unsuffixed group may take each
    class from another provider; these meet ``required`` together, and the root of the tree may stand in for them in
    ``member_of``.  A group without resources only names a provider, for the sake of ``same_subtrees``.
    """

    suffix: str = UNSUFFIXED
    resources: Mapping[str, int] = field(default_factory=dict)
    #: Traits.
    required: AnyOf = ()
    forbidden: frozenset[str] = frozenset()
    #: Aggregates.
    member_of: AnyOf = ()
    not_member_of: frozenset[str] = frozenset()
    #: Any provider of the only tree that may serve this group.
    in_tree: str | None = None


@dataclass(frozen=True, slots=True)
class CandidateRequest:
    """Everything that decides which candidates there are, and how many of them are wanted."""

    groups: tuple[Group, ...]
    #: Whether the suffixed groups must be served by different providers.
    isolate: bool = False
    #: Sets of suffixes; one of the providers that serve them must be above, or be, all the others.
    same_subtrees: tuple[frozenset[str], ...] = ()
    #: Traits of the root of the tree; not of the roots of providers that share with it.
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    #: Whether one candidate may use several providers of one tree.
    nested: bool = True
    #: How many candidates are wanted; None: all.
    limit: int | None = None
