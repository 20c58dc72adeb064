"""The policy: rules that decide who may send which request, and that policy files can override (docs: policy).

rules  the rules of the Placement API; other APIs define their own
files  the policy files, checked before they are used
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_policy import policy

from placement import conf as options
from placement import errors
from placement.policy import files

#: Maximum number of cached verdicts.
MAX_VERDICTS = 10_000
#: Maximum length of the key of a cached verdict (rule, caller and target), in characters.
_MAX_KEY_LENGTH = 2_000
_KIND = re.compile(r"([^\s()]+?):")  # the kind of a check: "role" in "role:admin"


def get_enforcer(rules: Sequence[policy.RuleDefault]) -> policy.Enforcer:
    """Return an enforcer with these rules, configured like the service's, for the oslopolicy tools.

    Command-line arguments that the tools do not define, such as ``--config-file``, are passed to the configuration.
    """
    tools = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    tools.add_argument("--namespace")
    tools.add_argument("--output-file")
    _, arguments = tools.parse_known_args(sys.argv[1:])
    conf = cfg.CONF  # shared with oslopolicy-validator, which opens the policy file by the value of the option
    options.read(conf, arguments)
    enforcer = _enforcer(conf, rules)
    if path := conf.find_file(conf.oslo_policy.policy_file):
        conf.set_override("policy_file", path, group="oslo_policy")
    return enforcer


def _enforcer(conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> policy.Enforcer:
    """Return an enforcer with all rules loaded."""
    enforcer = policy.Enforcer(conf)
    # The default of every rule has changed: the warnings would flood the log at every start.
    enforcer.suppress_default_change_warnings = True
    enforcer.register_defaults(rules)
    with _without_tracebacks():
        enforcer.load_rules()
    return enforcer


@contextlib.contextmanager
def _without_tracebacks() -> Iterator[None]:
    """Suppress oslo.policy's tracebacks for rules that it cannot parse; ``files.report`` logs these rules."""
    log = logging.getLogger("oslo_policy._parser")
    was_disabled, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = was_disabled


def find_mistakes(conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> list[files.PolicyMistake]:
    """Return the likely mistakes in the policy files; raise ValueError if a file cannot be used."""
    rules_and_paths = files.read(conf)
    enforcer = _enforcer(conf, rules)
    return [*files.find_mistakes(rules_and_paths, enforcer.file_rules, enforcer.registered_rules)]


class Policy:
    """The rules in force.

    They are read once, at start, so that no request sees partially loaded rules or checks files for changes.  A changed
    policy file takes effect at the next start, like the configuration.

    Verdicts are cached if they depend only on the caller and the target.
    """

    def __init__(self, conf: cfg.ConfigOpts, rules: Sequence[policy.RuleDefault]) -> None:
        """Read the rules; raise ValueError with a message for the operator if a policy file cannot be used."""
        #: The rules of the service with their defaults.
        self.rules = rules
        rules_and_paths = files.read(conf)
        self._enforcer = _enforcer(conf, rules)
        self._enforcer.use_conf = False
        files.report(files.find_mistakes(rules_and_paths, self._enforcer.file_rules, self._enforcer.registered_rules))
        self._cacheable = _self_contained(self._enforcer)
        self._verdicts: dict[str, type[errors.Forbidden] | None] = {}

    def authorize(self, rule: str, context: RequestContext, target: Mapping[str, Any] | None = None) -> None:
        """Raise Forbidden unless ``rule`` allows the caller to act on ``target``.

        Args:
            rule: The name of the rule.
            context: The caller.
            target: The attributes of the target; None for the caller's own project and user.  Attributes that are None
                match no rule, here as in ``context``.
        """
        if target is None:
            target = {"project_id": context.project_id, "user_id": context.user_id}
        caller = dict(context.to_policy_values())
        key = f"{rule} {caller} {target}"
        try:
            refusal = self._verdicts[key]
        except KeyError:
            refusal = self._verdict(rule, caller, target)
            if self._cacheable and len(self._verdicts) < MAX_VERDICTS and len(key) <= _MAX_KEY_LENGTH:
                self._verdicts[key] = refusal
        if refusal is not None:
            raise refusal(rule=rule)

    def _verdict(self, rule: str, caller: dict[str, Any], target: Mapping[str, Any]) -> type[errors.Forbidden] | None:
        try:
            # oslo.policy compares strings: None would match a project named "None".
            self._enforcer.authorize(rule, _without_none(target), _without_none(caller), do_raise=True)
        except policy.PolicyNotAuthorized:
            return errors.PolicyForbids
        except policy.InvalidScope:
            return errors.WrongScope
        return None


def _without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _self_contained(enforcer: policy.Enforcer) -> bool:
    """Whether verdicts depend only on caller and target: no rule has a check by a remote service or plugin."""
    own_kinds = {"rule", "role", *RequestContext().to_policy_values()}
    return all(own_kinds.issuperset(_KIND.findall(str(check))) for check in enforcer.rules.values())
