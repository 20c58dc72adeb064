"""The policy rules of the API below /v1 (docs: policy).

Answers name providers: they are for the callers that may list providers.  Those of the doctor name files and options of
the host: they are for administrators.
"""

from __future__ import annotations

from typing import Any

from oslo_policy import policy

_PROJECT = ["project"]
_ADMIN_OR_SERVICE = "rule:admin_or_service_api"

# Rule, check, description, method, path below /v1.
_RULES = (
    ("capacity:show", _ADMIN_OR_SERVICE, "Show how many times a request could be placed.", "GET", "/capacity"),
    ("doctor", "rule:admin_api", "Show what is wrong with configuration, database and data.", "GET", "/doctor"),
    ("explain", _ADMIN_OR_SERVICE, "Explain which candidates a request has, or why it has none.", "GET", "/explain"),
    ("overview:show", _ADMIN_OR_SERVICE, "Show all providers as trees.", "GET", "/overview"),
    (
        "providers:show",
        _ADMIN_OR_SERVICE,
        "Show a provider, its tree, and who holds what in it.",
        "GET",
        "/providers/{provider}",
    ),
    ("consumers:list", _ADMIN_OR_SERVICE, "List consumers with all that they hold.", "GET", "/consumers"),
    ("events:list", _ADMIN_OR_SERVICE, "Follow what was changed, in whose name.", "GET", "/events"),
    (
        "history:show",
        _ADMIN_OR_SERVICE,
        "Show what has happened to a provider, a node or a consumer.",
        "GET",
        "/history/{object}",
    ),
    ("usage:show", _ADMIN_OR_SERVICE, "Show capacity and usage of all providers over time.", "GET", "/usage"),
    ("claims:create", _ADMIN_OR_SERVICE, "Find places for consumers and claim them.", "POST", "/claims"),
    ("claims:show", _ADMIN_OR_SERVICE, "Show what a consumer holds, and when that ends.", "GET", "/claims/{consumer}"),
    (
        "claims:extend",
        _ADMIN_OR_SERVICE,
        "Give what a consumer holds another end, or none.",
        "POST",
        "/claims/{consumer}/extend",
    ),
    ("claims:delete", _ADMIN_OR_SERVICE, "Release all that several consumers hold.", "DELETE", "/claims"),
)


def _documented(name: str, check: str, description: str, method: str, path: str) -> policy.DocumentedRuleDefault:
    where: list[Any] = [{"path": f"/v1{path}", "method": method}]
    return policy.DocumentedRuleDefault(f"placement:v1:{name}", check, description, where, scope_types=_PROJECT)


RULES: list[policy.RuleDefault] = [_documented(*rule) for rule in _RULES]
