"""The versions of the API: what each one changed, and which one a request speaks.

``HISTORY`` is the single source: the constants, the range and the documents follow from it.  A handler never compares
tuples; it asks ``req.version >= mv.NESTED``.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from placement import errors

SERVICE_TYPE = "placement"


class Version(NamedTuple):
    """A microversion, ordered as its two numbers are."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


class Change(NamedTuple):
    """What one version brought, in a sentence for whoever writes a client."""

    version: Version
    sentence: str


INITIAL = Version(1, 0)
AGGREGATES = Version(1, 1)
RESOURCE_CLASSES = Version(1, 2)
MEMBER_OF = Version(1, 3)
RESOURCES_FILTER = Version(1, 4)
DELETE_INVENTORIES = Version(1, 5)
TRAITS = Version(1, 6)
ENSURE_RESOURCE_CLASS = Version(1, 7)
PROJECT_AND_USER = Version(1, 8)
USAGES = Version(1, 9)
ALLOCATION_CANDIDATES = Version(1, 10)
ALLOCATIONS_LINK = Version(1, 11)
ALLOCATIONS_BY_PROVIDER = Version(1, 12)
POST_ALLOCATIONS = Version(1, 13)
NESTED = Version(1, 14)
CACHE_HEADERS = Version(1, 15)
CANDIDATES_LIMIT = Version(1, 16)
CANDIDATES_REQUIRED = Version(1, 17)
REQUIRED_FILTER = Version(1, 18)
AGGREGATE_GENERATION = Version(1, 19)
PROVIDER_BODY = Version(1, 20)
CANDIDATES_MEMBER_OF = Version(1, 21)
FORBIDDEN_TRAITS = Version(1, 22)
ERROR_CODES = Version(1, 23)
REPEATED_MEMBER_OF = Version(1, 24)
GRANULAR_GROUPS = Version(1, 25)
RESERVED_EQUALS_TOTAL = Version(1, 26)
ALL_RESOURCES_IN_SUMMARIES = Version(1, 27)
CONSUMER_GENERATION = Version(1, 28)
NESTED_CANDIDATES = Version(1, 29)
RESHAPER = Version(1, 30)
CANDIDATES_IN_TREE = Version(1, 31)
FORBIDDEN_AGGREGATES = Version(1, 32)
STRING_SUFFIXES = Version(1, 33)
MAPPINGS = Version(1, 34)
ROOT_REQUIRED = Version(1, 35)
SAME_SUBTREE = Version(1, 36)
REPARENTING = Version(1, 37)
CONSUMER_TYPES = Version(1, 38)
ANY_TRAITS = Version(1, 39)

HISTORY = (
    Change(INITIAL, "Providers, their inventories, usages and allocations."),
    Change(AGGREGATES, "Aggregates of a provider can be read and replaced."),
    Change(RESOURCE_CLASSES, "Resource classes can be listed, shown, created, renamed and deleted."),
    Change(MEMBER_OF, "Providers can be listed by aggregate: member_of."),
    Change(RESOURCES_FILTER, "Providers can be listed by what they have room for: resources."),
    Change(DELETE_INVENTORIES, "All inventories of a provider can be deleted in one call."),
    Change(TRAITS, "Traits, and the traits of a provider."),
    Change(ENSURE_RESOURCE_CLASS, "PUT of a resource class makes sure that it exists; it renames no more."),
    Change(PROJECT_AND_USER, "Allocations name their project and user."),
    Change(USAGES, "Usages of a project, and of a user in it."),
    Change(ALLOCATION_CANDIDATES, "Allocation candidates: where a request would fit."),
    Change(ALLOCATIONS_LINK, "A provider links to its allocations."),
    Change(ALLOCATIONS_BY_PROVIDER, "Allocations are an object keyed by provider, and show their project and user."),
    Change(POST_ALLOCATIONS, "Allocations of several consumers can be written in one call."),
    Change(NESTED, "Providers form trees: parent, root and in_tree."),
    Change(CACHE_HEADERS, "Replies with a body carry last-modified and cache-control."),
    Change(CANDIDATES_LIMIT, "The number of allocation candidates can be limited."),
    Change(CANDIDATES_REQUIRED, "Allocation candidates can require traits, and summaries show them."),
    Change(REQUIRED_FILTER, "Providers can be listed by trait: required."),
    Change(AGGREGATE_GENERATION, "Aggregates are guarded by the generation of their provider."),
    Change(PROVIDER_BODY, "A created provider is returned in the reply."),
    Change(CANDIDATES_MEMBER_OF, "Allocation candidates can be limited to aggregates."),
    Change(FORBIDDEN_TRAITS, "Traits can be forbidden: required=!TRAIT."),
    Change(ERROR_CODES, "Errors carry a code for programs to read."),
    Change(REPEATED_MEMBER_OF, "member_of can be given several times; all must hold."),
    Change(GRANULAR_GROUPS, "Allocation candidates in numbered groups, with a group policy."),
    Change(RESERVED_EQUALS_TOTAL, "An inventory may be reserved entirely."),
    Change(ALL_RESOURCES_IN_SUMMARIES, "Provider summaries show every class of a provider."),
    Change(CONSUMER_GENERATION, "Consumers have a generation that guards their allocations."),
    Change(NESTED_CANDIDATES, "Allocation candidates may use several providers of one tree."),
    Change(RESHAPER, "Inventories and allocations can be moved together, in one call."),
    Change(CANDIDATES_IN_TREE, "Allocation candidates can be limited to a tree: in_tree."),
    Change(FORBIDDEN_AGGREGATES, "Aggregates can be forbidden: member_of=!UUID."),
    Change(STRING_SUFFIXES, "Group suffixes are words of up to 64 characters."),
    Change(MAPPINGS, "Allocation candidates say which provider serves which group."),
    Change(ROOT_REQUIRED, "The root of a candidate's tree can be asked for traits: root_required."),
    Change(SAME_SUBTREE, "Groups can be held together in a subtree, and need no resources then."),
    Change(REPARENTING, "A provider can be moved to another parent, or made a root."),
    Change(CONSUMER_TYPES, "Consumers have a type, and usages are told apart by it."),
    Change(ANY_TRAITS, "One of several traits can be required: required=in:A,B; required can be repeated."),
)

MINIMUM = HISTORY[0].version
LATEST = HISTORY[-1].version
_KNOWN = {change.version: change.version for change in HISTORY}
_NUMBERS = re.compile(r"\A\s*([0-9]{1,9})\s*\.\s*([0-9]{1,9})\s*\Z")


def negotiate(header: str | None) -> Version:
    """The version that the value of ``OpenStack-API-Version`` asks for (contract 1.6).

    The last entry for this service counts, entries for others are ignored, and none at all means the oldest version.
    Raises MalformedVersion or UnacceptableVersion.
    """
    wanted: str | None = None
    for entry in (header or "").split(","):
        service, _, number = entry.strip().partition(" ")
        if number and service.lower() == SERVICE_TYPE:
            wanted = number.strip()
    if wanted is None:
        return MINIMUM
    if wanted == "latest":
        return LATEST
    numbers = _NUMBERS.match(wanted)
    if numbers is None:
        raise errors.MalformedVersion(version=wanted)
    asked = Version(int(numbers[1]), int(numbers[2]))
    if asked not in _KNOWN:
        raise errors.UnacceptableVersion(version=wanted)
    return asked
