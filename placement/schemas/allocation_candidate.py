"""/allocation_candidates"""

from __future__ import annotations

from placement import microversion as mv
from placement.microversion import Version
from placement.schemas.declarations import Field, Object, PatternField, string
from placement.schemas.document import Query
from placement.schemas.provider import IN_TREE, MEMBER_OF, REQUIRED, RESOURCES

_TEXT = string()
_NUMBERED, _NAMED = "([1-9][0-9]*)?", "([a-zA-Z0-9_-]{1,64})?"


def _in_groups(name: str, text: str, since: Version = mv.GRANULAR_GROUPS) -> tuple[PatternField, PatternField]:
    """Return the fields of a parameter whose name ends with the suffix of a group."""
    return (
        PatternField(f"^{name}{_NUMBERED}$", _TEXT, since=since, until=mv.STRING_SUFFIXES, text=text),
        PatternField(f"^{name}{_NAMED}$", _TEXT, since=mv.STRING_SUFFIXES, text=text),
    )


PARAMETERS = (
    Field("resources", _TEXT, required=True, until=mv.GRANULAR_GROUPS, text=RESOURCES),
    Field(
        "limit",
        string(pattern="^[1-9][0-9]*$"),
        since=mv.CANDIDATES_LIMIT,
        text="The most candidates that are returned.",
    ),
    Field("required", _TEXT, since=mv.CANDIDATES_REQUIRED, until=mv.GRANULAR_GROUPS, text=REQUIRED),
    Field("member_of", _TEXT, since=mv.CANDIDATES_MEMBER_OF, until=mv.GRANULAR_GROUPS, text=MEMBER_OF),
    Field(
        "group_policy",
        string(enum=["none", "isolate"]),
        since=mv.GRANULAR_GROUPS,
        text="Whether suffixed groups need different providers (isolate) or may have the same (none).",
    ),
    Field("root_required", _TEXT, since=mv.ROOT_REQUIRED, text="Traits of the root of the tree: TRAIT,!TRAIT."),
    Field(
        "same_subtree",
        _TEXT,
        since=mv.SAME_SUBTREE,
        text="Suffixes of groups: the provider of one of them is at or above those of the others.",
    ),
    *_in_groups("resources", RESOURCES),
    *_in_groups("required", REQUIRED),
    *_in_groups("member_of", MEMBER_OF),
    *_in_groups("in_tree", IN_TREE, since=mv.CANDIDATES_IN_TREE),
)
#: Since when all values of these parameters count.
REPEATED = {"member_of": mv.REPEATED_MEMBER_OF, "same_subtree": mv.SAME_SUBTREE, "required": mv.ANY_TRAITS}
LIST = Query(Object(*PARAMETERS), repeated=REPEATED)
