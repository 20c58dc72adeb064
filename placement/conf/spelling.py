"""Detection of unknown options in a configuration, most of them misspelt."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from oslo_config import cfg

from placement.conf import reading

#: Minimum ratio of difflib for a name that counts as a misspelling of another one.
_SIMILARITY = 0.8
#: Options of oslo.db and other libraries that occur in our sections or resemble our options; never reported.
_LIBRARY_OPTIONS = {
    *("asyncio_connection", "asyncio_slave_connection", "backend", "db_inc_retry_interval", "db_max_retries"),
    *("db_max_retry_interval", "db_retry_interval", "idle_timeout", "min_pool_size", "mysql_enable_ndb"),
    *("synchronous_reader", "use_db_reconnect", "use_tpool", "sql_idle_timeout"),
    *("enforce_scope", "max_request_body_size", "auth_strategy"),
    *("log-config", "log_config", "logdir", "logfile"),  # deprecated names, which still have an effect
}
NamesBySection = Mapping[str, Collection[str]]


@dataclass(frozen=True, slots=True)
class UnknownOption:
    """An option, or a section if ``name`` is empty, that this service does not define."""

    #: The file or the environment variable.
    source: str
    section: str
    name: str
    #: The most similar known name, or the same name in another section.
    nearest: str | None

    def __str__(self) -> str:
        kind = "option" if self.name else "section"
        hint = f"; did you mean {self.nearest}?" if self.nearest else ""
        return f"{self.source}: unknown {kind} [{self.section}]{self.name}{hint}"


def unknown_options(conf: cfg.ConfigOpts, own_sections: Collection[str]) -> list[UnknownOption]:
    """Return the unknown options in the files and the environment, in the order of reading.

    Args:
        conf: The configuration that was read.
        own_sections: The sections of this service.  In other sections only options that resemble a known one are
            returned, since libraries accept options that they do not declare.
    """
    names_by_section: dict[str, set[str]] = {}
    for group, name in reading.names(conf):
        names_by_section.setdefault(group or "DEFAULT", set()).add(name)
    checked = (
        _check(source, section, name, names_by_section, own_sections) for source, section, name in written_options(conf)
    )
    return [option for option in checked if option]


def _check(
    source: str, section: str, name: str, names_by_section: NamesBySection, own_sections: Collection[str]
) -> UnknownOption | None:
    if section not in names_by_section:
        nearest = _nearest_name(section, names_by_section)
        return UnknownOption(source, section, "", f"[{nearest}]") if nearest else None
    if not name or name in names_by_section[section] or name in _LIBRARY_OPTIONS:
        return None
    elsewhere = (f"[{group}]{name}" for group in names_by_section if name in names_by_section[group])
    nearest = _nearest_name(name, names_by_section[section]) or (
        next(elsewhere, None) if section in own_sections else None
    )
    return UnknownOption(source, section, name, nearest) if nearest or section in own_sections else None


def _nearest_name(name: str, names: Collection[str]) -> str | None:
    by_lower_case = {name.lower(): name for name in names}
    matches = difflib.get_close_matches(name.lower(), by_lower_case, 1, _SIMILARITY)
    return by_lower_case[matches[0]] if matches else None


def written_options(conf: cfg.ConfigOpts) -> Iterator[tuple[str, str, str]]:
    """Yield file or variable, section and name of each option that is set; the name is "" for an empty section."""
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
