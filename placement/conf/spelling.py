"""Options in a configuration that do not exist; most often their names are misspelt."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from oslo_config import cfg

from placement.conf import reading

#: difflib's ratio from which on a name counts as a misspelling of another one.
_ALIKE = 0.8
#: Options of oslo.db and other libraries that are in our sections, or resemble ours; they have no effect here.
_OF_LIBRARIES = {
    *("asyncio_connection", "asyncio_slave_connection", "backend", "db_inc_retry_interval", "db_max_retries"),
    *("db_max_retry_interval", "db_retry_interval", "idle_timeout", "min_pool_size", "mysql_enable_ndb"),
    *("synchronous_reader", "use_db_reconnect", "use_tpool", "sql_idle_timeout"),
    *("enforce_scope", "max_request_body_size", "auth_strategy"),
    *("log-config", "log_config", "logdir", "logfile"),  # deprecated names, which have an effect
}
Known = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class UnknownOption:
    """An option, or a section if ``name`` is empty, that this service does not have."""

    #: The file, or the environment variable.
    where: str
    section: str
    name: str
    #: The known name that is most similar; or the same name, with the section that has it.
    nearest: str | None

    def __str__(self) -> str:
        what = f"[{self.section}]{self.name}"
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.where}: {what} is no option of this service{hint}"


def unknown_options(conf: cfg.ConfigOpts, own: Collection[str]) -> list[UnknownOption]:
    """Return the options in the files and the environment that this service does not have, in the order of reading.

    Args:
        conf: The configuration that was read.
        own: The sections of this service, where every unknown option is returned.  In other sections only those that
            resemble a known option are, since libraries have options that they do not list.
    """
    known: dict[str, set[str]] = {}
    for group, name in reading.names(conf):
        known.setdefault(group or "DEFAULT", set()).add(name)
    found = (_finding(where, section, name, known, own) for where, section, name in written(conf))
    return [each for each in found if each]


def _finding(where: str, section: str, name: str, known: Known, own: Collection[str]) -> UnknownOption | None:
    if section not in known:
        nearest = _nearest(section, known)
        return UnknownOption(where, section, "", f"[{nearest}]") if nearest else None
    if not name or name in known[section] or name in _OF_LIBRARIES:
        return None
    elsewhere = (f"[{other}]{name}" for other in known if name in known[other])
    nearest = _nearest(name, known[section]) or (next(elsewhere, None) if section in own else None)
    return UnknownOption(where, section, name, nearest) if nearest or section in own else None


def _nearest(name: str, names: Collection[str]) -> str | None:
    lower = {each.lower(): each for each in names}
    return next((lower[each] for each in difflib.get_close_matches(name.lower(), lower, 1, _ALIKE)), None)


def written(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str, str]]:
    """Yield, for each option: where it is, its section as oslo.config names it, and its name; "" for empty sections."""
    for path in reading.files(conf):
        sections: dict[str, dict[str, object]] = {}
        cfg.ConfigParser(path, sections).parse()
        for section, options in sections.items():
            for name in options or ("",):
                # oslo.config ignores the case of section names, except for [DEFAULT].
                yield path, section if section == "DEFAULT" else section.lower(), name
    for variable in sorted(os.environ):
        section, separator, name = variable.removeprefix("OS_").lower().partition("__")
        if variable.startswith("OS_") and separator:
            yield f"${variable}", "DEFAULT" if section == "default" else section, name
