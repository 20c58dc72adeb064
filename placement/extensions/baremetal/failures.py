"""Failures specific to the Bare Metal API."""

from __future__ import annotations

from placement import errors


class NodeNotFound(errors.NotFound):
    template = "Node %(node)s could not be found."


class NodeUuidTaken(errors.Conflict):
    template = "A node with UUID %(uuid)s already exists."


class NodeNameTaken(errors.Conflict):
    template = "A node with name %(name)s already exists."


class NodeTaken(errors.Conflict):
    template = "Node %(node)s is associated with instance %(instance)s."


class NodeUnavailable(NodeTaken):
    template = "Node %(node)s is not available."


class ConsumerHoldsElsewhere(errors.Conflict):
    template = (
        "Instance %(instance)s is already associated with a node, it cannot be associated with this other node %(node)s"
    )


class RecordUuidTaken(errors.Conflict):
    template = "An allocation with UUID %(uuid)s already exists."


class RecordNameTaken(errors.Conflict):
    template = "An allocation with name %(name)s already exists."


class RecordNotFound(errors.NotFound):
    template = "Allocation %(allocation)s could not be found."


class NodeHasNoRecord(errors.NotFound):
    template = "Allocation for node %(node)s was not found."


class AllocationNodeNotFound(errors.BadRequest):
    """The node in the body or query of an allocation request, or in the path to a node's allocation, does not exist."""

    template = "Node %(node)s could not be found."


class CandidatesNotFound(errors.BadRequest):
    template = "Nodes cannot be found: %(nodes)s"


class ResourceClassMissing(errors.BadRequest):
    template = "The resource_class field is mandatory when not backfilling"


class BackfillRefused(errors.Conflict):
    template = "Cannot backfill an allocation for node %(node)s: %(reasons)s"


class AllocationNeeded(errors.Conflict):
    template = (
        "Cannot remove allocation %(allocation)s for node %(node)s, because the node is %(state)s "
        "(and maintenance mode is off)"
    )


# --- nodes ---


class NotInThisVersion(errors.NotAcceptable):
    """The request uses a feature of a later version; clients react by negotiating the version."""

    template = "Request not acceptable."


class VerbNotPossible(errors.BadRequest):
    template = (
        'The requested action "%(verb)s" can not be performed on node "%(node)s" while it is in state "%(state)s".'
    )


class UnknownParent(errors.BadRequest):
    template = "Unable to apply the requested parent_node '%(parent)s'. Requested value was invalid."


class UnknownDriver(errors.BadRequest):
    template = (
        "No valid host was found. Reason: there is no driver %(driver)s. Ensure the driver is valid and enabled "
        "([baremetal]drivers)."
    )


class NodeInMaintenance(errors.BadRequest):
    template = "The provisioning operation can't be performed on node %(node)s because it's in maintenance mode."


class NodeRetired(errors.BadRequest):
    template = "The providing operation can't be performed on node %(node)s because it is retired."


class InstanceTraitsMissing(errors.BadRequest):
    template = (
        "Cannot specify instance traits that are not also set on the node. Node %(node)s is missing traits %(traits)s"
    )


class NodeProtected(errors.Forbidden):
    template = "Node %(node)s is protected and cannot be undeployed, rebuilt or deleted"


class NodeNotDeletable(errors.Conflict):
    template = (
        'Can not delete node "%(node)s" while it is in provision state "%(state)s". Valid provision states to perform '
        "deletion are: manageable, enroll, adopt failed, available; or set the node into maintenance mode"
    )


class ClassNotChangeable(errors.Conflict):
    template = (
        "Node %(node)s can not have resource_class updated unless it is in one of allowed (enroll, inspecting, inspect "
        "wait, manageable, available) states. Current state is '%(state)s'."
    )


class InstanceNotRemovable(errors.Conflict):
    template = (
        "Node %(node)s with an allocation can not have instance_uuid removed unless it is in one of allowed (enroll, "
        "inspecting, inspect wait, manageable, available) states or in maintenance mode. Current state is '%(state)s'."
    )


class NotProtectable(errors.Conflict):
    template = (
        "Node %(node)s can only be made protected in provision states 'active' or 'rescue', the current state is "
        "'%(state)s'"
    )


class ReasonWithoutProtection(errors.BadRequest):
    template = "The protected_reason field can only be set when protected is True"


class NotRetirable(errors.Conflict):
    template = "Node %(node)s can not have 'retired' set in provision state 'available'"


class TooManyTraits(errors.BadRequest):
    template = (
        "Could not modify traits for node %(node)s as it would exceed the maximum number of traits per node "
        "(%(count)d vs. %(maximum)d)"
    )


class NodeHasNoTrait(errors.NotFound):
    template = "Node %(node)s doesn't have a trait '%(trait)s'"
