"""Everything that can go wrong for a request, once: its kind, its code and its sentence.  Nothing here knows HTTP.

A failure is raised with the facts of the case, ``ProviderNotFound(uuid=uuid)``, and reads as a sentence that clients
may match (contract 1.5 and section 2).  What the URL names and is missing is ``NotFound``; what a body or query names
and is missing is ``BadRequest``: two facts, two exceptions.  Whatever is raised and is no ``Failure`` is a bug.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

UNDEFINED = "placement.undefined_code"
CONCURRENT_UPDATE = "placement.concurrent_update"
INVENTORY_INUSE = "placement.inventory.inuse"
DUPLICATE_NAME = "placement.duplicate_name"
PROVIDER_INUSE = "placement.resource_provider.inuse"
PROVIDER_CANNOT_DELETE_PARENT = "placement.resource_provider.cannot_delete_parent"
PROVIDER_NOT_FOUND = "placement.resource_provider.not_found"
QUERY_DUPLICATE_KEY = "placement.query.duplicate_key"
QUERY_BAD_VALUE = "placement.query.bad_value"
QUERY_MISSING_VALUE = "placement.query.missing_value"


class Failure(Exception):
    """A request that cannot be served as asked.  ``says`` is filled with the keyword arguments."""

    code = UNDEFINED
    says = "%(reason)s"
    #: What the reply says besides, as names and values.
    headers: tuple[tuple[str, str], ...] = ()

    def __init__(self, **facts: Any) -> None:
        super().__init__(self.says % facts)
        self.facts = facts
        self.sentence: str = self.args[0]

    def __str__(self) -> str:
        return self.sentence


@contextmanager
def saying(prefix: str, *kinds: type[Failure]) -> Iterator[None]:
    """Failures (of these kinds, or any) raised inside begin with ``prefix``; their kind and code stay."""
    try:
        yield
    except Failure as failure:
        if not kinds or isinstance(failure, kinds):
            failure.sentence = prefix + failure.sentence
        raise


class StartError(Exception):
    """The service cannot start; the text is a sentence for its operator.  It is no ``Failure``: no request meets it."""


# --- kinds -----------------------------------------------------------------------------------------------------------


class BadRequest(Failure):
    """The request is wrong in itself, or names in its body or query what does not exist."""


class Forbidden(Failure):
    """The caller may not do this."""


class NotFound(Failure):
    """What the URL names does not exist."""


class Conflict(Failure):
    """The request is sound, but the state of the service speaks against it."""


class Unavailable(Failure):
    """The service cannot answer now; the same request may succeed later."""


class NotAcceptable(Failure):
    """The service does not speak what the client wants to hear."""


class TooLarge(Failure):
    """The body is larger than the service reads."""

    says = "The body of a request may have %(most)d bytes at most ([api]max_request_body_size)."


class TooManyValues(TooLarge):
    """The body holds more than any client needs, and more than can be judged in a reasonable time."""

    says = "The body of a request may hold %(most)d values at most ([api]max_request_body_values)."


class TooManyEntries(BadRequest):
    says = "The request names %(count)d %(kind)s; there may be %(most)d at most ([placement]max_%(kind)s_per_request)."


class TooLong(Failure):
    """The query is longer than the service reads."""

    says = "The query of a request may have %(most)d bytes at most ([api]max_query_length)."


# --- the request itself ----------------------------------------------------------------------------------------------


class MalformedVersion(BadRequest):
    says = "Invalid microversion: invalid version string: %(version)s; it must be of the form X.Y or 'latest'."


class UnacceptableVersion(NotAcceptable):
    says = "Invalid microversion: Unacceptable version header: %(version)s"


class MalformedJSON(BadRequest):
    says = "Malformed JSON: %(reason)s"


class InvalidBody(BadRequest):
    says = "JSON does not validate: %(reason)s"


class InvalidQuery(BadRequest):
    says = "Invalid query string parameters: %(reason)s"


class InvalidValue(BadRequest):
    """A value that no column of the database can hold."""

    says = "A value in the request cannot be stored."


class PolicyForbids(Forbidden):
    says = "Policy does not allow %(rule)s to be performed."


class WrongScope(Forbidden):
    says = "%(rule)s"


# --- the service -----------------------------------------------------------------------------------------------------


class DatabaseUnavailable(Unavailable):
    says = "The database cannot be reached. Please try again."


class DatabaseRefuses(Unavailable):
    """Its server answers, so that waiting does not help: user, password or name of the database are wrong."""

    says = "The database refuses the service."


class TablesMissing(Unavailable):
    """The schema was taken away under the running service, or is that of another Placement."""

    says = 'The database lacks tables of this service. Its operator has to run "placement-manage db sync".'


class DatabaseBusy(Unavailable):
    """Refused, and not begun: as many requests as may wait for the database do so, and it does not answer them."""

    headers = (("retry-after", "1"),)
    says = "The database does not answer the requests that wait for it. Please try again."


class OutcomeUnknown(Unavailable):
    """The connection went away while the transaction was being committed."""

    says = "The database went away while the change was being committed: it may or may not be in effect. Please check."


class TooManyConflicts(Conflict):
    """Every attempt of a transaction collided with others."""

    code = CONCURRENT_UPDATE
    says = "update conflict: the request collided with others too many times. Please retry it."


class AllocationsChanged(TooManyConflicts):
    says = (
        "Inventory and/or allocations changed while attempting to allocate: "
        "the request collided with others too many times. Please retry it."
    )


# --- providers -------------------------------------------------------------------------------------------------------


class ProviderNotFound(NotFound):
    says = "No resource provider with uuid %(uuid)s found"


class ProviderNotFoundForDelete(ProviderNotFound):
    says = "No resource provider with uuid %(uuid)s found for delete"


class ProviderOfAllocationsNotFound(ProviderNotFound):
    says = "Resource provider '%(uuid)s' not found: No resource provider with uuid %(uuid)s found"


class ProviderUuidTaken(Conflict):
    code = DUPLICATE_NAME
    says = "Conflicting resource provider uuid: %(uuid)s already exists."


class ProviderNameTaken(Conflict):
    code = DUPLICATE_NAME
    says = "Conflicting resource provider name: %(name)s already exists."


class ProviderRenameTaken(Conflict):
    code = DUPLICATE_NAME
    says = "Conflicting resource provider %(name)s already exists."


class ProviderNotCreated(BadRequest):
    says = 'Unable to create resource provider "%(name)s", %(uuid)s: Object action create failed because: %(reason)s'


class ProviderNotSaved(BadRequest):
    says = "Unable to save resource provider %(uuid)s: Object action update failed because: %(reason)s"


class ProviderHasChildren(Conflict):
    code = PROVIDER_CANNOT_DELETE_PARENT
    says = "Unable to delete parent resource provider %(uuid)s: It has child resource providers."


class ProviderHasAllocations(Conflict):
    code = PROVIDER_INUSE
    says = "Unable to delete resource provider %(uuid)s: Resource provider has allocations."


class ProviderGenerationConflict(Conflict):
    code = CONCURRENT_UPDATE
    says = "resource provider generation conflict"


class ProviderGenerationMoved(Conflict):
    """The same fact, in the words of aggregates and traits."""

    code = CONCURRENT_UPDATE
    says = "Resource provider's generation already changed. Please update the generation and try again."


# --- inventories -----------------------------------------------------------------------------------------------------


class InventoryNotFound(NotFound):
    says = "No inventory of class %(resource_class)s for %(uuid)s"


class InventoryNotFoundForDelete(NotFound):
    says = "No inventory of class %(resource_class)s found for delete: No inventory of class %(resource_class)s found."


class NoInventoryToUpdate(BadRequest):
    says = (
        "No inventory record with resource class for resource provider %(uuid)s: "
        "No inventory of class %(resource_class)s found."
    )


class InventoryPresent(Conflict):
    code = CONCURRENT_UPDATE
    says = "Update conflict: Inventory of class %(resource_class)s already exists for resource provider %(uuid)s."


class InventoryInUse(Conflict):
    code = INVENTORY_INUSE
    says = "Inventory for '%(resource_classes)s' on resource provider '%(uuid)s' in use."


class InventoryNotDeletable(Conflict):
    """One inventory that has allocations: clients know this case by the code of a race (contract 1.5)."""

    code = CONCURRENT_UPDATE
    says = (
        "Unable to delete inventory of class %(resource_classes)s: "
        "Inventory for '%(resource_classes)s' on resource provider '%(uuid)s' in use."
    )


class ReservedReachesTotal(BadRequest):
    says = (
        "Invalid inventory for '%(resource_class)s' on resource provider '%(uuid)s'. "
        "The reserved value is greater than or equal to total."
    )


class ReservedExceedsTotal(BadRequest):
    says = (
        "Invalid inventory for '%(resource_class)s' on resource provider '%(uuid)s'. "
        "The reserved value is greater than total."
    )


# --- resource classes ------------------------------------------------------------------------------------------------


class ResourceClassNotFound(NotFound):
    says = "No such resource class %(name)s."


class UnknownResourceClass(BadRequest):
    says = "No such resource class %(name)s."


class ResourceClassIdsContended(TooManyConflicts):
    says = "Max retries of DB transaction exceeded attempting to create a resource class, please try again."


class ResourceClassExists(Conflict):
    says = "Conflicting resource class already exists: %(name)s"


class ResourceClassNameTaken(Conflict):
    says = "Resource class already exists: %(name)s"


class ResourceClassIsStandard(BadRequest):
    says = "Cannot update standard resource class %(name)s"


class ResourceClassNotDeletable(BadRequest):
    says = "Error in delete resource class: Cannot delete standard resource class %(name)s."


class ResourceClassInUse(Conflict):
    says = "Error in delete resource class: Cannot delete resource class %(name)s. Class is in use in inventory."


# --- traits ----------------------------------------------------------------------------------------------------------


class TraitNotFound(NotFound):
    says = "No such trait(s): %(name)s."


class UnknownTraits(BadRequest):
    says = "No such trait(s): %(names)s."


class UnknownProviderTraits(BadRequest):
    says = "No such trait %(names)s"


class InvalidTrait(BadRequest):
    says = (
        "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
        '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
    )


class BadTraitName(BadRequest):
    says = (
        "Badly formatted name parameter. Expected name query string parameter in form: "
        '?name=[in|startswith]:[name1,name2|prefix]. Got: "%(value)s"'
    )


class BadTraitAssociation(BadRequest):
    says = 'The query parameter "associated" only accepts "true" or "false"'


class TraitIsStandard(BadRequest):
    says = "Cannot delete standard trait %(name)s."


class TraitInUse(Conflict):
    says = "The trait %(name)s is in use by a resource provider."


# --- consumers and allocations ---------------------------------------------------------------------------------------


class MalformedConsumerUuid(BadRequest):
    says = "Malformed consumer_uuid: %(uuid)s"


class NoAllocations(NotFound):
    says = "No allocations for consumer '%(uuid)s'"


class ConsumerGenerationConflict(Conflict):
    code = CONCURRENT_UPDATE
    says = "consumer generation conflict - expected %(expected)s but got %(given)s"


class TooManyAllocations(BadRequest):
    says = (
        "The request writes %(count)d allocations; there may be %(most)d at most "
        "([placement]max_allocations_per_request)."
    )


class UnknownAllocationProvider(BadRequest):
    says = "Allocation for resource provider '%(uuid)s' that does not exist."


class NoInventoryToAllocate(Conflict):
    says = (
        "Unable to allocate inventory: Inventory for '%(resource_classes)s' on resource provider '%(uuids)s' invalid."
    )


class AmountAgainstConstraints(Conflict):
    says = (
        "Unable to allocate inventory: Unable to create allocation for '%(resource_class)s' on resource provider "
        "'%(uuid)s'. The requested amount would violate inventory constraints."
    )


class CapacityExceeded(Conflict):
    says = (
        "Unable to allocate inventory: Unable to create allocation for '%(resource_class)s' on resource provider "
        "'%(uuid)s'. The requested amount would exceed the capacity."
    )


# --- reshaper --------------------------------------------------------------------------------------------------------


class ReshapedProviderNotFound(BadRequest):
    code = PROVIDER_NOT_FOUND
    says = "Resource provider %(uuid)s in inventories not found: No resource provider with uuid %(uuid)s found."


class ReshapedGenerationConflict(Conflict):
    code = CONCURRENT_UPDATE
    says = "resource provider generation conflict for provider %(uuid)s: actual: %(actual)s, given: %(given)s"


# --- queries ---------------------------------------------------------------------------------------------------------


class MalformedResources(BadRequest):
    says = (
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        "?resources=VCPU:2,MEMORY_MB:1024. Got: %(got)s."
    )


class AmountNotInteger(BadRequest):
    says = "Requested resource %(resource_class)s expected positive integer amount. Got: %(got)s."


class AmountTooSmall(BadRequest):
    says = "Requested resource %(resource_class)s requires amount >= 1. Got: %(got)s."


class UnprefixedMemberOf(BadRequest):
    says = (
        "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid "
        "microversion. Got: %(got)s"
    )


class RepeatedMemberOf(BadRequest):
    says = "Multiple member_of%(suffix)s parameters are not supported"


class ForbiddenMemberOf(BadRequest):
    says = "Forbidden member_of%(suffix)s parameters are not supported in the specified microversion"


class ConflictingTraits(BadRequest):
    says = "Conflicting required and forbidden traits found in the following traits keys: %(conflicts)s"


class RepeatedRootRequired(BadRequest):
    code = QUERY_DUPLICATE_KEY
    says = "Query parameter 'root_required' may be specified only once."


class ConflictingRootTraits(BadRequest):
    code = QUERY_BAD_VALUE
    says = "Conflicting required and forbidden traits found in root_required: %(traits)s"


class UnsuffixedInSubtree(BadRequest):
    code = QUERY_BAD_VALUE
    says = "Empty string (unsuffixed group) can not be specified in `same_subtree` "


class TraitsWithoutResources(BadRequest):
    says = (
        "All traits parameters must be associated with resources.  Found the following orphaned traits keys: %(keys)s"
    )


class MemberOfWithoutResources(BadRequest):
    says = (
        "All member_of parameters must be associated with resources. "
        "Found the following orphaned member_of keys: %(keys)s"
    )


class GroupWithoutResources(BadRequest):
    says = "All request groups must specify resources."


class NoGroup(BadRequest):
    says = "At least one request group (`resources` or `resources{$S}`) is required."


class NoResources(BadRequest):
    code = QUERY_MISSING_VALUE
    says = "There must be at least one resources or resources[$S] parameter."


class GroupOutsideSubtree(BadRequest):
    code = QUERY_BAD_VALUE
    says = (
        "Resourceless suffixed group request should be specified in `same_subtree` query param: "
        "bad group(s) - %(suffixes)s."
    )


class UnknownSuffixes(BadRequest):
    code = QUERY_BAD_VALUE
    says = "Real suffixes should be specified in `same_subtree`: %(suffixes)s not found in %(groups)s."


class TooManyGroups(BadRequest):
    says = (
        "The request asks for %(count)d things that are placed each for itself, suffixed groups and the resource "
        "classes of the unsuffixed one; there may be %(most)d at most ([placement]max_request_groups)."
    )


class NoGroupPolicy(BadRequest):
    says = 'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
