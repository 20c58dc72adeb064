"""The failures of requests: their kinds, codes and sentences, without HTTP.

A failure is raised with the values of its sentence: ``ProviderNotFound(uuid=uuid)``.  Clients match sentences and codes
(docs: api-errors, api-error-codes).  A missing object is ``NotFound`` if the URL names it, and ``BadRequest`` if a body
or a query does.  An exception that is not a ``Failure`` is an internal error.

The module is long because it is a table; its sections are the nouns of the API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

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
    """The service refuses a request, or cannot complete it.

    Attributes:
        code: The code in the error document.
        template: The sentence, with the names of its values.
        headers: Names and values of response headers.
        facts: The values of the sentence.
        sentence: The sentence with its values, for clients.
        line: The sentence on one line, for APIs whose clients do not match sentences.
        field: The invalid part of the request; None if the failure does not concern a single value.
        expected: A description of the valid values of ``field``, or None.
        members: Members of the error document besides its errors, if its format permits them.
    """

    code = UNDEFINED
    template = "%(reason)s"
    headers: tuple[tuple[str, str], ...] = ()
    members: Mapping[str, Any] = {}
    field: str | None = None
    expected: str | None = None
    _line: str | None = None

    def __init__(self, **facts: Any) -> None:
        super().__init__(self.template % facts)
        self.facts = facts
        self.sentence: str = self.args[0]

    @property
    def line(self) -> str:
        return self._line or self.sentence

    @line.setter
    def line(self, line: str) -> None:
        self._line = line

    def set_violation(self, violation: Violation) -> None:
        """Set ``line``, ``field`` and ``expected``."""
        self.line, self.field, self.expected = str(violation), violation.field, violation.expected

    def __str__(self) -> str:
        return self.sentence


@contextmanager
def prefix_failures(prefix: str, *kinds: type[Failure]) -> Iterator[None]:
    """Prefix the sentences of failures raised in the block; their kinds and codes do not change.

    Args:
        kinds: The failures to prefix; without any, all failures.
    """
    try:
        yield
    except Failure as failure:
        if not kinds or isinstance(failure, kinds):
            failure.sentence, failure.line = prefix + failure.sentence, prefix + failure.line
        raise


@contextmanager
def attribute_to_field(field: str) -> Iterator[None]:
    """Attribute failures raised in the block to a field of the request, and prefix their sentences with it."""
    with prefix_failures(f"{field}: "):
        try:
            yield
        except Failure as failure:
            failure.field = field
            raise


class SchemaError(Exception):
    """The database schema does not fit this command or service, or cannot be migrated as requested."""


class StartError(Exception):
    """The service cannot start; the text is a finding for the operator."""


# --- kinds -----------------------------------------------------------------------------------------------------------


class BadRequest(Failure):
    """The request is malformed, or its body or query names an object that does not exist."""


class Forbidden(Failure):
    """The policy does not allow the request."""


class NotFound(Failure):
    """The object that the URL names does not exist."""


class Conflict(Failure):
    """The request is valid, but the state of the service does not allow it."""


class Gone(Failure):
    """The object that the client names existed, and is no longer available."""


class Unavailable(Failure):
    """The service cannot process the request now; the same request may succeed later."""


class NotAcceptable(Failure):
    """The service does not support the requested version or media type."""


class TooLarge(Failure):
    """The body has more bytes than the limit."""

    template = "The body of the request exceeds %(limit)d bytes ([api]max_request_body_size)."


class TooManyValues(TooLarge):
    """The body has more values than the limit, which bounds the time of validation."""

    template = "The body of the request contains more than %(limit)d values ([api]max_request_body_values)."


class TooManyEntries(BadRequest):
    template = "The request names %(count)d %(kind)s; the limit is %(limit)d ([placement]max_%(kind)s_per_request)."


class TooLong(Failure):
    """The query string has more bytes than the limit."""

    template = "The query string of the request exceeds %(limit)d bytes ([api]max_query_length)."


# --- the request itself ----------------------------------------------------------------------------------------------


class MalformedVersion(BadRequest):
    template = "Invalid microversion: invalid version string: %(version)s; it must be of the form X.Y or 'latest'."


class UnacceptableVersion(NotAcceptable):
    template = "Invalid microversion: Unacceptable version header: %(version)s"


class MalformedJSON(BadRequest):
    template = "Malformed JSON: %(reason)s"


class Violation(NamedTuple):
    """The description of an invalid value.

    Attributes:
        field: Its path, such as ``requests[0].consumer``; empty for the whole value.
        problem: The rest of a sentence that begins with the field.
        expected: The valid values, with an example if their format is not obvious.
    """

    field: str
    problem: str
    expected: str

    def __str__(self) -> str:
        return f"{self.field or 'the body'} {self.problem}; {self.expected}"


class InvalidDocument(BadRequest):
    """A body or a query does not conform to its schema.

    Args:
        reason: The explanation that clients match.
        violation: The description in one line; None if ``reason`` serves.
    """

    def __init__(self, reason: object, violation: Violation | None = None) -> None:
        super().__init__(reason=reason)
        if violation is not None:
            self.set_violation(violation)


class InvalidBody(InvalidDocument):
    template = "JSON does not validate: %(reason)s"


class InvalidQuery(InvalidDocument):
    template = "Invalid query string parameters: %(reason)s"


class InvalidValue(BadRequest):
    """A value does not fit its database column."""

    template = "A value in the request cannot be stored."


class PolicyForbids(Forbidden):
    template = "Policy does not allow %(rule)s to be performed."


class WrongScope(Forbidden):
    template = "%(rule)s"


# --- the service -----------------------------------------------------------------------------------------------------


class DatabaseUnavailable(Unavailable):
    template = "The database cannot be reached. Please try again."


class DatabaseRefuses(Unavailable):
    """The database server rejects the user, the password or the database name."""

    template = "The database refuses the service."


class TablesMissing(Unavailable):
    """The schema is missing, or belongs to another version of the service."""

    template = 'The database lacks tables of this service. The operator must run "placement-manage db sync".'


class DatabaseBusy(Unavailable):
    """The database does not answer the threads that use it, and no more are admitted; the request was not started."""

    headers = (("retry-after", "1"),)
    template = "The database is not responding to earlier requests. Please try again."


class OutcomeUnknown(Unavailable):
    """The connection was lost during COMMIT, or the thread that places the claim is stalled."""

    template = (
        "The database did not confirm the commit: the change may or may not be in effect. Please check the state "
        "before you retry."
    )


class TooManyConflicts(Conflict):
    """Every attempt of the transaction collided with other transactions."""

    code = CONCURRENT_UPDATE
    template = "update conflict: the request collided with others too many times. Please retry it."


class AllocationsChanged(TooManyConflicts):
    template = (
        "Inventory and/or allocations changed while attempting to allocate: "
        "the request collided with others too many times. Please retry it."
    )


# --- providers -------------------------------------------------------------------------------------------------------


class ProviderNotFound(NotFound):
    template = "No resource provider with uuid %(uuid)s found"


class ProviderNotFoundForDelete(ProviderNotFound):
    template = "No resource provider with uuid %(uuid)s found for delete"


class ProviderOfAllocationsNotFound(ProviderNotFound):
    template = "Resource provider '%(uuid)s' not found: No resource provider with uuid %(uuid)s found"


class ProviderUuidTaken(Conflict):
    code = DUPLICATE_NAME
    template = "Conflicting resource provider uuid: %(uuid)s already exists."


class ProviderNameTaken(Conflict):
    code = DUPLICATE_NAME
    template = "Conflicting resource provider name: %(name)s already exists."


class ProviderRenameTaken(Conflict):
    code = DUPLICATE_NAME
    template = "Conflicting resource provider %(name)s already exists."


class ProviderNotCreated(BadRequest):
    template = (
        'Unable to create resource provider "%(name)s", %(uuid)s: Object action create failed because: %(reason)s'
    )


class ProviderNotSaved(BadRequest):
    template = "Unable to save resource provider %(uuid)s: Object action update failed because: %(reason)s"


class ProviderHasChildren(Conflict):
    code = PROVIDER_CANNOT_DELETE_PARENT
    template = "Unable to delete parent resource provider %(uuid)s: It has child resource providers."


class ProviderHasAllocations(Conflict):
    code = PROVIDER_INUSE
    template = "Unable to delete resource provider %(uuid)s: Resource provider has allocations."


class ProviderGenerationConflict(Conflict):
    code = CONCURRENT_UPDATE
    template = "resource provider generation conflict"


class ProviderGenerationMoved(Conflict):
    """``ProviderGenerationConflict`` with the sentence of aggregates and traits."""

    code = CONCURRENT_UPDATE
    template = "Resource provider's generation already changed. Please update the generation and try again."


# --- inventories -----------------------------------------------------------------------------------------------------


class InventoryNotFound(NotFound):
    template = "No inventory of class %(resource_class)s for %(uuid)s"


class InventoryNotFoundForDelete(NotFound):
    template = (
        "No inventory of class %(resource_class)s found for delete: No inventory of class %(resource_class)s found."
    )


class NoInventoryToUpdate(BadRequest):
    template = (
        "No inventory record with resource class for resource provider %(uuid)s: "
        "No inventory of class %(resource_class)s found."
    )


class InventoryPresent(Conflict):
    code = CONCURRENT_UPDATE
    template = "Update conflict: Inventory of class %(resource_class)s already exists for resource provider %(uuid)s."


class InventoryInUse(Conflict):
    code = INVENTORY_INUSE
    template = "Inventory for '%(resource_classes)s' on resource provider '%(uuid)s' in use."


class InventoryNotDeletable(Conflict):
    """The inventory has allocations; the code is ``CONCURRENT_UPDATE`` (docs: api-error-codes)."""

    code = CONCURRENT_UPDATE
    template = (
        "Unable to delete inventory of class %(resource_classes)s: "
        "Inventory for '%(resource_classes)s' on resource provider '%(uuid)s' in use."
    )


class ReservedReachesTotal(BadRequest):
    template = (
        "Invalid inventory for '%(resource_class)s' on resource provider '%(uuid)s'. "
        "The reserved value is greater than or equal to total."
    )


class ReservedExceedsTotal(BadRequest):
    template = (
        "Invalid inventory for '%(resource_class)s' on resource provider '%(uuid)s'. "
        "The reserved value is greater than total."
    )


# --- resource classes ------------------------------------------------------------------------------------------------


class ResourceClassNotFound(NotFound):
    template = "No such resource class %(name)s."


class UnknownResourceClass(BadRequest):
    template = "No such resource class %(name)s."


class ResourceClassIdsContended(TooManyConflicts):
    template = "Max retries of DB transaction exceeded attempting to create a resource class, please try again."


class ResourceClassExists(Conflict):
    template = "Conflicting resource class already exists: %(name)s"


class ResourceClassNameTaken(Conflict):
    template = "Resource class already exists: %(name)s"


class ResourceClassIsStandard(BadRequest):
    template = "Cannot update standard resource class %(name)s"


class ResourceClassNotDeletable(BadRequest):
    template = "Error in delete resource class: Cannot delete standard resource class %(name)s."


class ResourceClassInUse(Conflict):
    template = "Error in delete resource class: Cannot delete resource class %(name)s. Class is in use in inventory."


# --- traits ----------------------------------------------------------------------------------------------------------


class TraitNotFound(NotFound):
    template = "No such trait(s): %(name)s."


class UnknownTraits(BadRequest):
    template = "No such trait(s): %(names)s."


class UnknownProviderTraits(BadRequest):
    template = "No such trait %(names)s"


class InvalidTrait(BadRequest):
    template = (
        "The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "
        '"CUSTOM_" and use following characters: "A"-"Z", "0"-"9" and "_"'
    )


class BadTraitName(BadRequest):
    template = (
        "Badly formatted name parameter. Expected name query string parameter in form: "
        '?name=[in|startswith]:[name1,name2|prefix]. Got: "%(value)s"'
    )


class BadTraitAssociation(BadRequest):
    template = 'The query parameter "associated" only accepts "true" or "false"'


class TraitIsStandard(BadRequest):
    template = "Cannot delete standard trait %(name)s."


class TraitInUse(Conflict):
    template = "The trait %(name)s is in use by a resource provider."


# --- consumers and allocations ---------------------------------------------------------------------------------------


class MalformedConsumerUuid(BadRequest):
    template = "Malformed consumer_uuid: %(uuid)s"


class NoAllocations(NotFound):
    template = "No allocations for consumer '%(uuid)s'"


class ConsumerGenerationConflict(Conflict):
    code = CONCURRENT_UPDATE
    template = "consumer generation conflict - expected %(expected)s but got %(given)s"


class TooManyAllocations(BadRequest):
    template = (
        "The request writes %(count)d allocations; the limit is %(limit)d ([placement]max_allocations_per_request)."
    )


class UnknownAllocationProvider(BadRequest):
    template = "Allocation for resource provider '%(uuid)s' that does not exist."


class NoInventoryToAllocate(Conflict):
    template = (
        "Unable to allocate inventory: Inventory for '%(resource_classes)s' on resource provider '%(uuids)s' invalid."
    )


class AmountAgainstConstraints(Conflict):
    template = (
        "Unable to allocate inventory: Unable to create allocation for '%(resource_class)s' on resource provider "
        "'%(uuid)s'. The requested amount would violate inventory constraints."
    )


class CapacityExceeded(Conflict):
    template = (
        "Unable to allocate inventory: Unable to create allocation for '%(resource_class)s' on resource provider "
        "'%(uuid)s'. The requested amount would exceed the capacity."
    )


# --- reshaper --------------------------------------------------------------------------------------------------------


class ReshapedProviderNotFound(BadRequest):
    code = PROVIDER_NOT_FOUND
    template = "Resource provider %(uuid)s in inventories not found: No resource provider with uuid %(uuid)s found."


class ReshapedGenerationConflict(Conflict):
    code = CONCURRENT_UPDATE
    template = "resource provider generation conflict for provider %(uuid)s: actual: %(actual)s, given: %(given)s"


# --- queries ---------------------------------------------------------------------------------------------------------


class InvalidCondition(BadRequest):
    """A condition of a query is invalid.

    Attributes:
        violation: The description for APIs whose errors are one line, with placeholders as in ``template``.
    """

    violation: Violation

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        self.set_violation(Violation(*(part % facts for part in self.violation)))


class UnknownClassInQuery(InvalidCondition, UnknownResourceClass):
    template = f"Invalid resource class in resources parameter: {UnknownResourceClass.template}"
    violation = Violation("%(parameter)s", 'names "%(name)s", which is not a resource class', "a class such as VCPU")


class UnknownTraitsInQuery(InvalidCondition, UnknownTraits):
    violation = Violation("%(parameter)s", 'names "%(names)s", which does not exist', "a trait such as HW_CPU_X86_VMX")


class MalformedResources(InvalidCondition):
    template = (
        "Badly formed resources parameter. Expected resources query string parameter in form: "
        "?resources=VCPU:2,MEMORY_MB:1024. Got: %(got)s."
    )
    violation = Violation("%(parameter)s", "%(problem)s", "amounts, for example VCPU:2,MEMORY_MB:1024")


class AmountNotInteger(InvalidCondition):
    template = "Requested resource %(resource_class)s expected positive integer amount. Got: %(got)s."
    violation = Violation("%(parameter)s", 'has "%(got)s" as the amount of %(resource_class)s', "a whole number from 1")


class AmountTooSmall(AmountNotInteger):
    template = "Requested resource %(resource_class)s requires amount >= 1. Got: %(got)s."


class UnprefixedMemberOf(InvalidCondition):
    template = (
        "Multiple values for 'member_of' must be prefixed with the 'in:' or '!in:' keyword using the valid "
        "microversion. Got: %(got)s"
    )
    violation = Violation("%(parameter)s", 'is a list, "%(got)s", without in: or !in:', "for example in:UUID,UUID")


class RepeatedMemberOf(BadRequest):
    template = "Multiple member_of%(suffix)s parameters are not supported"


class ForbiddenMemberOf(BadRequest):
    template = "Forbidden member_of%(suffix)s parameters are not supported in the specified microversion"


class ConflictingTraits(InvalidCondition):
    template = "Conflicting required and forbidden traits found in the following traits keys: %(conflicts)s"
    violation = Violation("%(parameter)s", "both requires and forbids %(traits)s", "each trait once, as A or as !A")


class RepeatedRootRequired(BadRequest):
    code = QUERY_DUPLICATE_KEY
    template = "Query parameter 'root_required' may be specified only once."


class ConflictingRootTraits(InvalidCondition):
    code = QUERY_BAD_VALUE
    template = "Conflicting required and forbidden traits found in root_required: %(traits)s"
    violation = Violation("root_required", "both requires and forbids %(traits)s", "each trait once, as A or as !A")


class UnsuffixedInSubtree(InvalidCondition):
    code = QUERY_BAD_VALUE
    template = "Empty string (unsuffixed group) can not be specified in `same_subtree` "
    violation = Violation("same_subtree", "has an empty suffix", "suffixes of groups, for example _A,_B")


class TraitsWithoutResources(BadRequest):
    template = (
        "All traits parameters must be associated with resources.  Found the following orphaned traits keys: %(keys)s"
    )


class MemberOfWithoutResources(BadRequest):
    template = (
        "All member_of parameters must be associated with resources. "
        "Found the following orphaned member_of keys: %(keys)s"
    )


class GroupWithoutResources(BadRequest):
    template = "All request groups must specify resources."


class NoGroup(BadRequest):
    template = "At least one request group (`resources` or `resources{$S}`) is required."


class NoResources(InvalidCondition):
    code = QUERY_MISSING_VALUE
    template = "There must be at least one resources or resources[$S] parameter."
    violation = Violation("resources", "is missing", "amounts in at least one group, for example resources=VCPU:2")


class GroupOutsideSubtree(InvalidCondition):
    code = QUERY_BAD_VALUE
    template = (
        "Resourceless suffixed group request should be specified in `same_subtree` query param: "
        "bad group(s) - %(suffixes)s."
    )
    violation = Violation("same_subtree", "does not name %(named)s", "the suffix of each group without resources")


class UnsuffixedWithoutResources(GroupOutsideSubtree):
    violation = Violation("resources", "is missing", "amounts: only a group with a suffix may have none")


class UnknownSuffixes(InvalidCondition):
    code = QUERY_BAD_VALUE
    template = "Real suffixes should be specified in `same_subtree`: %(suffixes)s not found in %(groups)s."
    violation = Violation("same_subtree", "names %(unknown)s, but the query has no such group", "%(known)s")


class TooManyGroups(BadRequest):
    template = (
        "The request has %(count)d demands (suffixed groups, and resource classes of the unsuffixed group); the limit "
        "is %(limit)d ([placement]max_request_groups)."
    )


class NoGroupPolicy(InvalidCondition):
    template = 'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.'
    violation = Violation(
        "group_policy", "is missing", "none or isolate, if a query has more than one group with a suffix"
    )
