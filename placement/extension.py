"""What an extension adds to the service, and which extensions there are (docs: architecture-extensions).

The core has the Placement API and what every API needs.  All else is an extension: a value that names what it adds, in
a package that is installed with an entry point of the group ``placement.extensions``.  The core knows the values that
it finds there, and imports no extension.
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
    from placement.metrics.instruments import Instruments, Subscription

#: The group of entry points.
ENTRY_POINTS = "placement.extensions"

OPTIONS: Mapping[str | None, Sequence[cfg.Opt]] = {
    "extensions": [
        cfg.ListOpt(
            "enabled",
            sample_default="all that are installed",
            help="The names of the extensions that this service has. Of the others there is nothing: no API, option, "
            "policy rule, command, check or metric. An empty list leaves the Placement API.",
        )
    ]
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Extension:
    """What one extension adds, at each place where the core lets others add something.

    The module that has the value is loaded by every program of the service.  So whatever imports much is returned by a
    function, which imports it.

    Args:
        name: The name in ``[extensions]enabled``, and of its entry point.
        requires: The names of extensions that it imports, or whose routes it asks; they have to be enabled, too.
        options: Options of the configuration by group.  With an option ``enabled`` in the group of its own name its
            API is served only if that is true.
        cors: Headers of its own that browsers may use: names that are added to the defaults of ``[cors]``, by option.
        api: Returns its API, with its policy rules, failures and layers.
        layers: Returns layers around all APIs, outermost first.  They know who sends a request, and a failure that
            they raise is rendered as the API's.
        commands: Adds commands to those of ``placement-manage``.  The default ``action`` of each is given the
            configuration, and returns the exit code.
        checks: Returns checks of the doctor.
        metrics: Creates its metrics, and returns what changes them: events, each with a function for its facts.
        schema: Returns its tables, and what of them ``db release`` would lose.
        attach: Called with each database that a program opens for requests or commands, before its first write, with
            the number of threads that serve requests; None if it is not known, as in commands.
        swept: Removes rows that are of no use any more, for ``placement-manage db sweep``.
        greeting: Returns what ``placement-serve`` says of it when it starts at a URL; empty for nothing.
        demonstration: Fills an empty database for ``placement-serve --demo``; it may send requests to the application.
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
    swept: Callable[[Database], Sequence[Swept]] | None = None
    greeting: Callable[[cfg.ConfigOpts, str], str] | None = None
    demonstration: Callable[[Database, WSGIApplication], None] | None = None

    @property
    def is_optional(self) -> bool:
        """Whether an option of its own says if its API is served."""
        return any(option.dest == "enabled" for option in self.options.get(self.name, ()))

    def is_served(self, conf: cfg.ConfigOpts) -> bool:
        """Whether it has an API, and the configuration asks for it."""
        return self.api is not None and (not self.is_optional or bool(conf[self.name].enabled))


@functools.cache
def installed() -> Mapping[str, Extension]:
    """Return all installed extensions by name, in the order of the names; raises cfg.Error if one cannot be loaded."""
    found = sorted(metadata.entry_points(group=ENTRY_POINTS), key=lambda entry: entry.name)
    return {entry.name: _loaded(entry) for entry in found}


def _loaded(entry: metadata.EntryPoint) -> Extension:
    try:
        extension: Extension = entry.load()
    except Exception as error:
        raise cfg.Error(f"The extension {entry.name} ({entry.value}) cannot be loaded: {error!r}") from error
    if extension.name != entry.name:
        raise cfg.Error(f"The extension {entry.value} has the name {extension.name}, and its entry point {entry.name}.")
    return extension


def enabled(conf: cfg.ConfigOpts) -> tuple[Extension, ...]:
    """Return the extensions of a configuration, in the order of their names.

    Raises:
        cfg.Error: The configuration names one that is not installed, or lacks one that another requires.
    """
    names = conf.extensions.enabled
    if names is None:
        names = [*installed()]
    if missing := sorted(set(names) - installed().keys()):
        present = ", ".join(installed()) or "none"
        raise cfg.Error(f"[extensions]enabled: not installed: {', '.join(missing)}; installed: {present}.")
    chosen = tuple(each for name, each in installed().items() if name in names)
    for each in chosen:
        if lacking := sorted(set(each.requires) - set(names)):
            raise cfg.Error(f"[extensions]enabled: {each.name} needs {', '.join(lacking)}.")
    return chosen


def options_of(extensions: Iterable[Extension]) -> Iterator[tuple[str, Sequence[cfg.Opt]]]:
    """Yield the options of the extensions: group and options; a group may come more than once."""
    for each in extensions:
        yield from each.options.items()


def additions_of(extensions: Iterable[Extension]) -> tuple[Addition, ...]:
    """Return the tables of the extensions."""
    return tuple(_addition(each.schema) for each in extensions if each.schema)


# Called once for each extension: what is dropped and what is discarded are compared.
@functools.cache
def _addition(schema: Callable[[], Addition]) -> Addition:
    return schema()


def additions(conf: cfg.ConfigOpts) -> tuple[Addition, ...]:
    """Return the tables of the extensions that a configuration enables; raises cfg.Error."""
    return additions_of(enabled(conf))


def attach(database: Database, conf: cfg.ConfigOpts, threads: int | None = None) -> None:
    """Attach the extensions of a configuration to a database that was opened; raises cfg.Error."""
    for each in enabled(conf):
        if each.attach:
            each.attach(database, conf, threads)


def forget_others(conf: cfg.ConfigOpts) -> tuple[Extension, ...] | None:
    """Take the options of extensions that are not enabled from a configuration that was read.

    Returns:
        Those that are enabled, if there are others.  Then the configuration has to be read again, since it is as before
        the first time.

    Raises:
        cfg.Error: As :func:`enabled`.
    """
    if "extensions" not in conf:  # the tools of oslo.policy read our files with their own options
        return None
    kept = enabled(conf)
    others = [each for each in installed().values() if each not in kept]
    if others:
        conf.clear()
    for group, options in options_of(others):
        conf.unregister_opts(options, group=group)
    return kept if others else None
