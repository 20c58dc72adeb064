"""The policy rules of the Placement API, and functions that declare rules."""

from __future__ import annotations

from typing import Any

from oslo_policy import policy

_PROJECT = ["project"]
#: The default check of most rules.
ADMIN_OR_SERVICE = "rule:admin_or_service_api"


def _base(name: str, check_str: str, description: str, scope_types: list[str] | None = None) -> policy.RuleDefault:
    """Return a rule that also accepts its old default while ``[oslo_policy]enforce_new_defaults`` is off."""
    old = policy.DeprecatedRule(
        name=name,
        check_str="role:admin",
        deprecated_reason="More specific roles replace the administrator role, which allowed everything.",
        deprecated_since="1.0.0",
    )
    return policy.RuleDefault(name, check_str, description, scope_types=scope_types, deprecated_rule=old)


_BASE = [
    policy.RuleDefault("admin_api", "role:admin", "Administrators.", scope_types=_PROJECT),
    _base("service_api", "role:service", "Other services.", _PROJECT),
    _base("admin_or_service_api", "role:admin or role:service", "Administrators and other services.", _PROJECT),
    _base(
        "project_reader_api",
        "role:reader and project_id:%(project_id)s",
        "Readers of the project that the request concerns.",
    ),
    _base(
        "admin_or_project_reader_or_service_api",
        "role:admin or rule:project_reader_api or role:service",
        "Administrators, other services, and readers of the project that the request concerns.",
        _PROJECT,
    ),
]


def documented_rule(
    name: str, description: str, *operations: str, check: str = ADMIN_OR_SERVICE
) -> policy.DocumentedRuleDefault:
    """Return a rule for operations such as ``GET /traits/{name}``."""
    entries: list[Any] = []
    for operation in operations:
        method, path = operation.split()
        entries.append({"path": path, "method": method})
    return policy.DocumentedRuleDefault(name, check, description, entries, scope_types=_PROJECT)


def _rule(name: str, description: str, *operations: str, check: str = ADMIN_OR_SERVICE) -> policy.RuleDefault:
    return documented_rule(f"placement:{name}", description, *operations, check=check)


RULES: list[policy.RuleDefault] = [
    *_BASE,
    _rule("resource_providers:list", "List resource providers.", "GET /resource_providers"),
    _rule("resource_providers:create", "Create a resource provider.", "POST /resource_providers"),
    _rule("resource_providers:show", "Show a resource provider.", "GET /resource_providers/{uuid}"),
    _rule("resource_providers:update", "Rename or move a resource provider.", "PUT /resource_providers/{uuid}"),
    _rule("resource_providers:delete", "Delete a resource provider.", "DELETE /resource_providers/{uuid}"),
    _rule("resource_classes:list", "List resource classes.", "GET /resource_classes"),
    _rule("resource_classes:create", "Create a resource class.", "POST /resource_classes"),
    _rule("resource_classes:show", "Show a resource class.", "GET /resource_classes/{name}"),
    _rule(
        "resource_classes:update",
        "Create a resource class if it does not exist; before 1.7 rename a class.",
        "PUT /resource_classes/{name}",
    ),
    _rule("resource_classes:delete", "Delete a resource class.", "DELETE /resource_classes/{name}"),
    _rule(
        "resource_providers:inventories:list",
        "List the inventories of a provider.",
        "GET /resource_providers/{uuid}/inventories",
    ),
    _rule("resource_providers:inventories:create", "Add an inventory.", "POST /resource_providers/{uuid}/inventories"),
    _rule(
        "resource_providers:inventories:show",
        "Show an inventory.",
        "GET /resource_providers/{uuid}/inventories/{resource_class}",
    ),
    _rule(
        "resource_providers:inventories:update",
        "Replace all inventories, or update one.",
        "PUT /resource_providers/{uuid}/inventories",
        "PUT /resource_providers/{uuid}/inventories/{resource_class}",
    ),
    _rule(
        "resource_providers:inventories:delete",
        "Delete all inventories, or one.",
        "DELETE /resource_providers/{uuid}/inventories",
        "DELETE /resource_providers/{uuid}/inventories/{resource_class}",
    ),
    _rule(
        "resource_providers:aggregates:list",
        "List the aggregates of a provider.",
        "GET /resource_providers/{uuid}/aggregates",
    ),
    _rule(
        "resource_providers:aggregates:update",
        "Replace the aggregates of a provider.",
        "PUT /resource_providers/{uuid}/aggregates",
    ),
    _rule("resource_providers:usages", "Show the usages of a provider.", "GET /resource_providers/{uuid}/usages"),
    _rule(
        "usages",
        "Show the usages of a project, or of a user in a project.",
        "GET /usages",
        check="rule:admin_or_project_reader_or_service_api",
    ),
    _rule("traits:list", "List traits.", "GET /traits"),
    _rule("traits:show", "Show a trait.", "GET /traits/{name}"),
    _rule("traits:update", "Create a trait if it does not exist.", "PUT /traits/{name}"),
    _rule("traits:delete", "Delete a trait.", "DELETE /traits/{name}"),
    _rule("resource_providers:traits:list", "List the traits of a provider.", "GET /resource_providers/{uuid}/traits"),
    _rule(
        "resource_providers:traits:update", "Replace the traits of a provider.", "PUT /resource_providers/{uuid}/traits"
    ),
    _rule(
        "resource_providers:traits:delete",
        "Delete all traits of a provider.",
        "DELETE /resource_providers/{uuid}/traits",
    ),
    _rule("allocations:manage", "Write allocations of several consumers.", "POST /allocations"),
    _rule("allocations:list", "Show the allocations of a consumer.", "GET /allocations/{consumer_uuid}"),
    _rule("allocations:update", "Replace the allocations of a consumer.", "PUT /allocations/{consumer_uuid}"),
    _rule("allocations:delete", "Delete the allocations of a consumer.", "DELETE /allocations/{consumer_uuid}"),
    _rule(
        "resource_providers:allocations:list",
        "Show the allocations of a provider.",
        "GET /resource_providers/{uuid}/allocations",
    ),
    _rule("allocation_candidates:list", "Find candidates.", "GET /allocation_candidates"),
    _rule("reshaper:reshape", "Move inventories and allocations together.", "POST /reshaper", check="rule:service_api"),
]
