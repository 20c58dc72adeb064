"""The reading of a configuration by oslo.config, with its errors turned into one sentence for the operator."""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from oslo_config import cfg

_VALUE = re.compile(
    r"Value for option \S+ (?:from LocationInfo\(.*?detail='(?P<place>.*?)'\) )?is not valid: (?P<why>.*)"
)
_ARGUMENT = re.compile(r"argument --(?P<name>[\w-]+): (?P<why>.*)")


def read(conf: cfg.ConfigOpts, arguments: Sequence[str], **how: Any) -> None:
    """Have ``conf`` read its files and a command line; ``how`` is for oslo.config.

    Raises:
        cfg.Error: A sentence that names the file or the option.
        SystemExit: As argparse raises it.
    """
    try:
        with _raised_errors():
            conf(list(arguments), **how)
    except cfg.RequiredOptError as error:
        raise cfg.Error(f"{error}: {_where(conf, error)}") from None
    except UnicodeDecodeError as error:
        raise cfg.Error(_undecodable(conf, arguments, error)) from None
    except OSError as error:
        raise cfg.Error(f"{error.filename} cannot be read: {error.strerror}") from None


def check(conf: cfg.ConfigOpts, defaults: cfg.ConfigOpts, never_empty: Iterable[tuple[str | None, str]]) -> None:
    """Raise ``cfg.Error`` if the value of an option is invalid.

    oslo.config itself validates a value only when it is used, which would be during a request.  It reads an empty value
    of an option that is no string as None; this is refused unless None is the default.

    Args:
        conf: The configuration that was read.
        defaults: The same options, with their defaults; it may have others, too.
        never_empty: The options of type string, or list of strings, that must not be empty.
    """
    strings, present = set(never_empty), {*names(conf)}
    for group, name in filter(present.__contains__, names(defaults)):
        value = _value(conf, group, name)
        missing = value is None and _value(defaults, group, name) is not None
        if missing or ((group, name) in strings and value is not None and not all(value or [""])):
            raise cfg.Error(f"{place(group, name)}: the value is empty")


def names(conf: cfg.ConfigOpts) -> Iterator[tuple[str | None, str]]:
    """Yield group and name of every registered option."""
    for name in conf:
        try:
            found = conf[name]
        except cfg.Error:
            found = None  # an option with a bad value
        if isinstance(found, cfg.ConfigOpts.GroupAttr):
            yield from ((name, option) for option in found)
        else:
            yield None, name


def place(group: str | None, name: str) -> str:
    """Return an option as documents write it: ``[group]name``."""
    return f"[{group or 'DEFAULT'}]{name}"


def files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files that were read, in this order."""
    found = list(conf.config_file or ())
    for directory in conf.config_dir or ():
        found += sorted(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".conf"))
    return found


def _value(conf: cfg.ConfigOpts, group: str | None, name: str) -> Any:
    try:
        return (conf if group is None else conf[group])[name]
    except cfg.Error as error:
        raise cfg.Error(_readable(str(error), place(group, name))) from None


def _readable(message: str, option: str) -> str:
    parsed = _VALUE.fullmatch(" ".join(message.split()))
    if not parsed:
        return f"{option}: {message}"
    return f"{option}: {parsed['why']}" + (f" (in {parsed['place']})" if parsed["place"] else "")


@contextlib.contextmanager
def _raised_errors() -> Iterator[None]:
    """Raise ``cfg.Error`` where oslo.config prints an error about a value and ends the process."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stderr(printed):
            yield
    except SystemExit:
        parsed = _ARGUMENT.fullmatch(printed.getvalue().strip())
        if not parsed:
            raise
        why = parsed["why"].strip()
        raise cfg.Error(place(None, parsed["name"]) + f": {why}" + (" ''" if why.endswith(":") else "")) from None
    finally:
        if not isinstance(sys.exc_info()[1], cfg.Error):
            sys.stderr.write(printed.getvalue())


def _where(conf: cfg.ConfigOpts, error: cfg.RequiredOptError) -> str:
    group = getattr(error.group, "name", error.group) or "DEFAULT"
    variable = f"OS_{group}__{error.opt_name}".upper()
    read_files = ", ".join(files(conf))
    if read_files:
        return f"neither {read_files} nor ${variable} has it"
    return (
        f"no configuration file was found, in $OS_PLACEMENT_CONFIG_DIR, ~/.placement, ~, /etc/placement and /etc, "
        f"and ${variable} is not set"
    )


def _undecodable(conf: cfg.ConfigOpts, arguments: Sequence[str], error: UnicodeDecodeError) -> str:
    """Return which file is not UTF-8, of those that the command line names and the default ones."""
    words = [word.partition("=")[2] or word for word in arguments]
    directories = [*words, *conf.default_config_dirs]
    inside = [os.path.join(each, name) for each in directories if os.path.isdir(each) for name in os.listdir(each)]
    for path in (*words, *conf.default_config_files, *inside):
        try:
            with open(path, encoding="utf-8") as opened:
                opened.read()
        except UnicodeDecodeError as wrong:
            return f"{path} is not UTF-8: {wrong.reason}"
        except OSError:
            continue
    # oslo.config reads files in the encoding of the locale.
    return f"The configuration has characters that the locale's encoding, {error.encoding}, lacks: set LANG=C.UTF-8"
