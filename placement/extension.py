"""The extension points of the service, and discovery of extensions (docs: architecture-extensions).

The core contains the Placement API and the code shared by all APIs.  Everything else is an extension: an ``Extension``
that declares its additions, in a package with an entry point of the group ``placement.extensions``.  The core never
imports an extension directly.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING
from wsgiref.types import WSGIApplication

from oslo_config import cfg

if TYPE_CHECKING:
    from placement.checks.check import Check
    from placement.db.database import Database
    from placement.db.schema.schema import Addition
    from placement.db.upkeep.sweep import Swept
    from placement.http.api import Api, Layer
    from placement.index.live import LiveIndex
    from placement.metrics.instruments import Instruments, Subscription

#: The group of entry points.
ENTRY_POINTS = "placement.extensions"

OPTIONS: Mapping[str | None, Sequence[cfg.Opt]] = {
    "extensions": [
        cfg.ListOpt(
            "enabled",
            sample_default="all that are installed",
            help="The names of the enabled extensions. Other extensions add nothing: no API, option, policy rule, "
            "command, check or metric. With an empty list the service has the Placement API only.",
        )
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extension:
    """The additions of one extension, one argument per extension point.

    Every process of the service imports the module that contains this value.  Additions with expensive imports are
    therefore returned by functions.

    Attributes:
        name: The name in ``[extensions]enabled`` and of the entry point.
        requires: The names of extensions whose modules it imports or whose routes it requests; they must also be
            enabled.
        options: Configuration options by group.  If the group named after the extension has an option ``enabled``, its
            API is served only if that option is true.
        cors: Headers to add to the defaults of ``[cors]``, by option, so that browsers may use them.
        api: A function that returns its API, with policy rules, failures and layers.
        layers: A function that returns layers around all APIs, outermost first.  They run after authentication, and
            failures that they raise are rendered in the form of the API.
        commands: A function that adds commands to ``placement-manage``.  The default ``action`` of each command takes
            the configuration and returns the exit code.
        checks: A function that returns checks for the doctor.
        metrics: A function that creates its metrics, and returns the events that change them, each with a listener.
        schema: A function that returns its tables, and the data that ``db release`` would lose.
        attach: A callback for each database that a process opens for requests or commands, before its first write.  It
            takes the database, the configuration, and the number of threads that serve requests (None if unknown, as in
            commands).
        start: A callback with the database and the index of the service, before its first request.
        swept: A function for ``placement-manage db sweep`` that removes obsolete rows and returns their numbers.
        greeting: A function that returns text for ``placement-serve`` to print at start, given the configuration and
            the URL; it may be empty.
        demonstration: A function that fills an empty database for ``placement-serve --demo``; it may send requests to
            the application.
    """

    name: str
    requires: tuple[str, ...] = ()
    options: Mapping[str, Sequence[cfg.Opt]] = field(default_factory=dict)
    cors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    api: Callable[[], Api] | None = None
    layers: Callable[[], Sequence[Layer]] = tuple
    commands: Callable[[argparse._SubParsersAction[argparse.ArgumentParser]], None] | None = None
    checks: Callable[[], Sequence[Check]] = tuple
    metrics: Callable[[Instruments], Iterable[Subscription]] | None = None
    schema: Callable[[], Addition] | None = None
    attach: Callable[[Database, cfg.ConfigOpts, int | None], None] | None = None
    start: Callable[[Database, LiveIndex], None] | None = None
    swept: Callable[[Database], Sequence[Swept]] | None = None
    greeting: Callable[[cfg.ConfigOpts, str], str] | None = None
    demonstration: Callable[[Database, WSGIApplication], None] | None = None

    @property
    def is_optional(self) -> bool:
        """Whether its option ``enabled`` decides if its API is served."""
        return any(option.dest == "enabled" for option in self.options.get(self.name, ()))

    def is_served(self, conf: cfg.ConfigOpts) -> bool:
        """Whether it has an API that the configuration enables."""
        return self.api is not None and (not self.is_optional or bool(conf[self.name].enabled))


@functools.cache
def installed_extensions() -> Mapping[str, Extension]:
    """Return all installed extensions by name, sorted; raise cfg.Error if one cannot be loaded."""
    entries = sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)
    return {entry.name: _load(entry) for entry in entries}


def _load(entry: metadata.EntryPoint) -> Extension:
    try:
        extension: Extension = entry.load()
    except Exception as error:
        raise cfg.Error(f"The extension {entry.name} ({entry.value}) cannot be loaded: {error!r}") from error
    if extension.name != entry.name:
        raise cfg.Error(f"The extension {entry.value} is named {extension.name}, but its entry point {entry.name}.")
    return extension


def enabled(conf: cfg.ConfigOpts) -> tuple[Extension, ...]:
    """Return the extensions that a configuration enables, sorted by name.

    Raises:
        cfg.Error: An enabled extension is not installed, or requires one that is not enabled.
    """
    names = conf.extensions.enabled
    if names is None:
        names = [*installed_extensions()]
    if missing := sorted(set(names) - installed_extensions().keys()):
        present = ", ".join(installed_extensions()) or "none"
        raise cfg.Error(f"[extensions]enabled: not installed: {', '.join(missing)}; installed: {present}.")
    chosen = tuple(extension for name, extension in installed_extensions().items() if name in names)
    for extension in chosen:
        if lacking := sorted(set(extension.requires) - set(names)):
            raise cfg.Error(f"[extensions]enabled: {extension.name} needs {', '.join(lacking)}.")
    return chosen


def options_of(extensions: Iterable[Extension]) -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    """Yield groups with options of the extensions; a group may occur more than once."""
    for extension in extensions:
        yield from extension.options.items()


def additions_of(extensions: Iterable[Extension]) -> tuple[Addition, ...]:
    """Return the tables of the extensions."""
    return tuple(_addition(extension.schema) for extension in extensions if extension.schema)


# Cached because additions are compared by identity, for example discarded additions with dropped additions.
@functools.cache
def _addition(schema: Callable[[], Addition]) -> Addition:
    return schema()


def additions(conf: cfg.ConfigOpts) -> tuple[Addition, ...]:
    """Return the tables of the extensions that a configuration enables, or raise cfg.Error."""
    return additions_of(enabled(conf))


def attach(database: Database, conf: cfg.ConfigOpts, threads: int | None = None) -> None:
    """Attach the enabled extensions to an opened database, or raise cfg.Error."""
    for extension in enabled(conf):
        if extension.attach:
            extension.attach(database, conf, threads)


def start(database: Database, conf: cfg.ConfigOpts, index: LiveIndex) -> None:
    """Start the enabled extensions with the database and the index of a service."""
    for extension in enabled(conf):
        if extension.start:
            extension.start(database, index)


def forget_disabled(conf: cfg.ConfigOpts) -> tuple[Extension, ...] | None:
    """Unregister the options of disabled extensions from a configuration that has been read.

    Returns:
        The enabled extensions if any is disabled: the configuration is then cleared and must be read again.  Otherwise
        None.

    Raises:
        cfg.Error: As for :func:`enabled`.
    """
    if "extensions" not in conf:  # the tools of oslo.policy read our files with their own options
        return None
    active = enabled(conf)
    disabled = [extension for extension in installed_extensions().values() if extension not in active]
    if disabled:
        conf.clear()
    for group, options in options_of(disabled):
        conf.unregister_opts(options, group=group)
    return active if disabled else None
