"""Policy files, checked before oslo.policy reads them so that mistakes are reported."""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
from oslo_policy import policy

LOG = logging.getLogger(__name__)

_GROUP = "oslo_policy"
#: The check "!", which refuses every caller; oslo.policy substitutes it for a check that it cannot parse.
_NEVER = re.compile(r"(?<![^\s()\[\],'\"])!(?![^\s()\[\],'\"])")
_REFERENCE = re.compile(r"\brule:([^\s()]+)")


def read(conf: cfg.ConfigOpts) -> dict[str, tuple[str, Any]]:
    """Return the rules of all files by name, each with the path of its file.

    A file that the configuration names must exist; the default file need not.

    Raises:
        ValueError: A file cannot be used; the message contains its path.
    """
    return {name: (path, rule) for path in paths(conf) for name, rule in _rules(path).items()}


@dataclass(frozen=True, slots=True)
class PolicyMistake:
    """A likely mistake in a policy file that does not prevent the start."""

    sentence: str
    #: Whether it refuses callers that the rule should allow.
    refuses: bool = False


def find_mistakes(
    written: Mapping[str, tuple[str, Any]], parsed: Mapping[str, policy.RuleDefault], own_names: Collection[str]
) -> Iterator[PolicyMistake]:
    """Yield the mistakes in the policy files.

    Args:
        written: The rules and their files, from :func:`read`.
        parsed: The same rules, parsed by oslo.policy.
        own_names: The names of the service's rules.
    """
    referenced = {name for _, rule in written.values() for name in _REFERENCE.findall(str(rule))}
    for name, (path, rule) in written.items():
        if not rule:
            sentence = f'{path}: the rule "{name}" is empty and allows every caller: write "@" if that is intended'
            yield PolicyMistake(sentence)
        elif name in parsed and len(_NEVER.findall(str(parsed[name].check))) > len(_NEVER.findall(str(rule))):
            sentence = f'{path}: the rule "{name}" cannot be parsed, and its invalid checks refuse every caller: {rule}'
            yield PolicyMistake(sentence, refuses=True)
        if name not in own_names and name not in referenced:
            nearest = difflib.get_close_matches(name, own_names, 1)
            hint = f'; did you mean "{nearest[0]}"?' if nearest else ""
            yield PolicyMistake(f'{path}: the service does not define the rule "{name}"{hint}')


def report(mistakes: Iterable[PolicyMistake]) -> None:
    """Log the mistakes."""
    for mistake in mistakes:
        LOG.log(logging.ERROR if mistake.refuses else logging.WARNING, "%s", mistake.sentence)


def paths(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the files in the order of reading, or raise ValueError; later rules override earlier ones."""
    options = conf[_GROUP]
    policy_file = conf.find_file(options.policy_file)
    if policy_file:
        yield policy_file
    elif _is_set(conf, "policy_file"):
        raise ValueError(f"{options.policy_file} does not exist")
    for name in options.policy_dirs:
        directory = conf.find_file(name)
        if directory and not os.path.isdir(directory):
            raise ValueError(f"{directory} is not a directory")
        if directory:
            yield from (os.path.join(directory, file) for file in _visible_files(directory))
        elif _is_set(conf, "policy_dirs"):
            LOG.warning("[%s]policy_dirs: %s does not exist", _GROUP, name)


def _visible_files(directory: str) -> list[str]:
    """Return the names of the files that oslo.policy reads in the directory."""
    return sorted(entry.name for entry in os.scandir(directory) if entry.is_file() and not entry.name.startswith("."))


def _is_set(conf: cfg.ConfigOpts, option: str) -> bool:
    """Whether the operator has set the option."""
    location = conf.get_location(option, _GROUP)
    return location is not None and location.location.is_user_controlled


def _rules(path: str) -> dict[str, Any]:
    """Return the rules of a file by name, or raise ValueError."""
    try:
        with open(path, encoding="utf-8") as file:
            rules = policy.parse_file_contents(file.read())
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not UTF-8: {error.reason}") from None
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"{path} is not valid YAML: {error}") from None
    if not isinstance(rules, dict):
        raise ValueError(f"{path} must map names to rules, but is a {type(rules).__name__}")
    for name, rule in rules.items():
        if not isinstance(name, str):
            raise ValueError(f"{path}: {name!r} is not the name of a rule")
        if not _is_rule(rule):
            raise ValueError(f'{path}: the rule "{name}" is neither a string nor a list of strings')
    return rules


def _is_rule(rule: Any) -> bool:
    """Whether a value is a rule: a string, or in the old syntax a list of checks or of lists of checks."""
    if isinstance(rule, str):
        return True
    alternatives = rule if isinstance(rule, list) else [None]
    return all(
        isinstance(item, str) or (isinstance(item, list) and all(isinstance(check, str) for check in item))
        for item in alternatives
    )
