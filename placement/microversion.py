"""The versions of the Placement API: each with a name for the code, and a sentence for authors of clients.

Handlers compare versions by name, as in ``req.version >= mv.NESTED``.
"""

from __future__ import annotations

from placement.version_history import History
from placement.version_history import Version as Version

SERVICE_TYPE = "placement"
HISTORY = History(SERVICE_TYPE)

INITIAL = HISTORY.add(1, 0, "Providers, their inventories, usages and allocations.")
AGGREGATES = HISTORY.add(1, 1, "Aggregates of a provider can be read and replaced.")
RESOURCE_CLASSES = HISTORY.add(1, 2, "Resource classes can be listed, shown, created, renamed and deleted.")
MEMBER_OF = HISTORY.add(1, 3, "Providers can be listed by aggregate: member_of.")
RESOURCES_FILTER = HISTORY.add(1, 4, "Providers can be listed by free capacity: resources.")
DELETE_INVENTORIES = HISTORY.add(1, 5, "All inventories of a provider can be deleted in one request.")
TRAITS = HISTORY.add(1, 6, "Traits, and the traits of a provider.")
ENSURE_RESOURCE_CLASS = HISTORY.add(
    1, 7, "PUT of a resource class ensures that the class exists, and no longer renames it."
)
PROJECT_AND_USER = HISTORY.add(1, 8, "Allocations name their project and user.")
USAGES = HISTORY.add(1, 9, "Usages of a project, and of a user in it.")
ALLOCATION_CANDIDATES = HISTORY.add(1, 10, "Allocation candidates: providers that can supply a request.")
ALLOCATIONS_LINK = HISTORY.add(1, 11, "A provider links to its allocations.")
ALLOCATIONS_BY_PROVIDER = HISTORY.add(
    1, 12, "Allocations are an object keyed by provider, and show their project and user."
)
POST_ALLOCATIONS = HISTORY.add(1, 13, "Allocations of several consumers can be written in one request.")
NESTED = HISTORY.add(1, 14, "Providers form trees: parent, root and in_tree.")
CACHE_HEADERS = HISTORY.add(1, 15, "Responses with a body have the headers last-modified and cache-control.")
CANDIDATES_LIMIT = HISTORY.add(1, 16, "The number of allocation candidates can be limited.")
CANDIDATES_REQUIRED = HISTORY.add(1, 17, "Allocation candidates can require traits, and summaries show them.")
REQUIRED_FILTER = HISTORY.add(1, 18, "Providers can be listed by trait: required.")
AGGREGATE_GENERATION = HISTORY.add(1, 19, "Writes of aggregates check the generation of the provider.")
PROVIDER_BODY = HISTORY.add(1, 20, "The response to the creation of a provider contains it.")
CANDIDATES_MEMBER_OF = HISTORY.add(1, 21, "Allocation candidates can be limited to aggregates.")
FORBIDDEN_TRAITS = HISTORY.add(1, 22, "Traits can be forbidden: required=!TRAIT.")
ERROR_CODES = HISTORY.add(1, 23, "Errors have a machine-readable code.")
REPEATED_MEMBER_OF = HISTORY.add(1, 24, "member_of can be repeated; all values must hold.")
GRANULAR_GROUPS = HISTORY.add(1, 25, "Allocation candidates for numbered groups, with a group policy.")
RESERVED_EQUALS_TOTAL = HISTORY.add(1, 26, "An inventory may be reserved entirely.")
ALL_RESOURCES_IN_SUMMARIES = HISTORY.add(1, 27, "Provider summaries show every class of a provider.")
CONSUMER_GENERATION = HISTORY.add(1, 28, "Consumers have a generation, which writes of allocations check.")
NESTED_CANDIDATES = HISTORY.add(1, 29, "Allocation candidates may use several providers of one tree.")
RESHAPER = HISTORY.add(1, 30, "Inventories and allocations can be moved in one request: the reshaper.")
CANDIDATES_IN_TREE = HISTORY.add(1, 31, "Allocation candidates can be limited to a tree: in_tree.")
FORBIDDEN_AGGREGATES = HISTORY.add(1, 32, "Aggregates can be forbidden: member_of=!UUID.")
STRING_SUFFIXES = HISTORY.add(1, 33, "Group suffixes are words of up to 64 characters.")
MAPPINGS = HISTORY.add(1, 34, "Allocation candidates map each group to its providers.")
ROOT_REQUIRED = HISTORY.add(1, 35, "Traits can be required of the root of a candidate's tree: root_required.")
SAME_SUBTREE = HISTORY.add(1, 36, "Groups can be kept in one subtree, and then need no resources: same_subtree.")
REPARENTING = HISTORY.add(1, 37, "A provider can be moved to another parent, or made a root.")
CONSUMER_TYPES = HISTORY.add(1, 38, "Consumers have a type, and usages can be listed by type.")
ANY_TRAITS = HISTORY.add(1, 39, "One of several traits can be required: required=in:A,B; required can be repeated.")

MINIMUM = HISTORY.minimum
LATEST = HISTORY.latest
