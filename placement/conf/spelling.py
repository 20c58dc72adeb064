"""Options that stand in a configuration and do not exist: most often their names are misspelt."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from oslo_config import cfg

from placement.conf import reading

#: How alike a name has to be to be taken for a misspelt one, where others may have options of their own.
_ALIKE = 0.8
#: Options of oslo.db and others that stand in our sections, or resemble ours, and have no effect here.
_OF_LIBRARIES = {
    *("asyncio_connection", "asyncio_slave_connection", "backend", "db_inc_retry_interval", "db_max_retries"),
    *("db_max_retry_interval", "db_retry_interval", "idle_timeout", "min_pool_size", "mysql_enable_ndb"),
    *("mysql_wsrep_sync_wait", "synchronous_reader", "use_db_reconnect", "use_tpool", "sql_idle_timeout"),
    *("enforce_scope", "max_request_body_size", "auth_strategy"),
    *("log-config", "log_config", "logdir", "logfile"),  # older names, which have their effect
}
Known = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class Misspelt:
    """An option, or a section if it has no name, that this service does not have."""

    where: str
    section: str
    name: str
    nearest: str | None

    def __str__(self) -> str:
        what = f"[{self.section}]{self.name}"
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.where}: {what} is no option of this service{hint}"


def misspelt(conf: cfg.ConfigOpts, own: Collection[str]) -> list[Misspelt]:
    """What stands in the files and the environment, and is no option of this service, in the order in which it is read.

    In the sections of ``own`` every unknown option is listed; elsewhere one that resembles a known option, since the
    libraries have more options than they tell.
    """
    known: dict[str, set[str]] = {}
    for group, name in reading.names(conf):
        known.setdefault(group or "DEFAULT", set()).add(name)
    found = (_judged(where, section, name, known, own) for where, section, name in _written(conf))
    return [each for each in found if each]


def _judged(where: str, section: str, name: str, known: Known, own: Collection[str]) -> Misspelt | None:
    if section not in known:
        nearest = _nearest(section, known)
        return Misspelt(where, section, "", f"[{nearest}]") if nearest else None
    if not name or name in known[section] or name in _OF_LIBRARIES:
        return None
    nearest = _nearest(name, known[section])
    return Misspelt(where, section, name, nearest) if nearest or section in own else None


def _nearest(name: str, names: Collection[str]) -> str | None:
    lower = {each.lower(): each for each in names}
    return next((lower[each] for each in difflib.get_close_matches(name.lower(), lower, 1, _ALIKE)), None)


def _written(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str, str]]:
    """Where an option stands, its section as oslo.config knows it, and its name; without a name: an empty section."""
    for path in reading.files(conf):
        sections: dict[str, dict[str, object]] = {}
        cfg.ConfigParser(path, sections).parse()
        for section, options in sections.items():
            for name in options or ("",):
                # A section is found in any case of its letters, but for [DEFAULT].
                yield path, section if section == "DEFAULT" else section.lower(), name
    for variable in sorted(os.environ):
        section, separator, name = variable.removeprefix("OS_").lower().partition("__")
        if variable.startswith("OS_") and separator:
            yield f"${variable}", "DEFAULT" if section == "default" else section, name
