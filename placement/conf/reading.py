"""Reading of configurations by oslo.config, with errors that operators understand."""

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


def read(conf: cfg.ConfigOpts, arguments: Sequence[str], **keywords: Any) -> None:
    """Read files and a command line into ``conf``; ``keywords`` is passed to oslo.config.

    Raises:
        cfg.Error: A file or an option is invalid; the message names it.
        SystemExit: Raised by argparse.
    """
    try:
        with _raised_errors():
            conf(list(arguments), **keywords)
    except cfg.RequiredOptError as error:
        raise cfg.Error(f"{error}: {_place_of_error(conf, error)}") from None
    except UnicodeDecodeError as error:
        raise cfg.Error(_undecodable_message(conf, arguments, error)) from None
    except OSError as error:
        raise cfg.Error(f"{error.filename} cannot be read: {error.strerror}") from None


def check(conf: cfg.ConfigOpts, defaults: cfg.ConfigOpts, never_empty: Iterable[tuple[str | None, str]]) -> None:
    """Raise ``cfg.Error`` if the value of an option is invalid.

    oslo.config itself validates a value only on access, which would be during a request.  It reads an empty value of an
    option other than a string as None; this is refused unless None is the default.

    Args:
        conf: The configuration that was read.
        defaults: A configuration with the default values; it may contain additional options.
        never_empty: String and list options that must not be empty.
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
            value = conf[name]
        except cfg.Error:
            value = None  # an option with an invalid value
        if isinstance(value, cfg.ConfigOpts.GroupAttr):
            yield from ((name, option) for option in value)
        else:
            yield None, name


def place(group: str | None, name: str) -> str:
    """Return the notation of an option in messages and documents: ``[group]name``."""
    return f"[{group or 'DEFAULT'}]{name}"


def files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files that were read, in the order of reading."""
    paths = list(conf.config_file or ())
    for directory in conf.config_dir or ():
        paths += sorted(os.path.join(directory, name) for name in os.listdir(directory) if name.endswith(".conf"))
    return paths


def _value(conf: cfg.ConfigOpts, group: str | None, name: str) -> Any:
    try:
        return (conf if group is None else conf[group])[name]
    except cfg.Error as error:
        raise cfg.Error(_readable_message(str(error), place(group, name))) from None


def _readable_message(message: str, option: str) -> str:
    parsed = _VALUE.fullmatch(" ".join(message.split()))
    if not parsed:
        return f"{option}: {message}"
    return f"{option}: {parsed['why']}" + (f" (in {parsed['place']})" if parsed["place"] else "")


@contextlib.contextmanager
def _raised_errors() -> Iterator[None]:
    """Raise ``cfg.Error`` for invalid values; oslo.config would print an error and end the process."""
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


def _place_of_error(conf: cfg.ConfigOpts, error: cfg.RequiredOptError) -> str:
    group = getattr(error.group, "name", error.group) or "DEFAULT"
    variable = f"OS_{group}__{error.opt_name}".upper()
    read_files = ", ".join(files(conf))
    if read_files:
        return f"set it in {read_files} or in ${variable}"
    return (
        f"no configuration file was found in $OS_PLACEMENT_CONFIG_DIR, ~/.placement, ~, /etc/placement or /etc, "
        f"and ${variable} is not set"
    )


def _undecodable_message(conf: cfg.ConfigOpts, arguments: Sequence[str], error: UnicodeDecodeError) -> str:
    """Return a message with the file that is not UTF-8, one of the command line's files or of the default files."""
    words = [word.partition("=")[2] or word for word in arguments]
    directories = [*words, *conf.default_config_dirs]
    inside = [os.path.join(path, name) for path in directories if os.path.isdir(path) for name in os.listdir(path)]
    for path in (*words, *conf.default_config_files, *inside):
        try:
            with open(path, encoding="utf-8") as file:
                file.read()
        except UnicodeDecodeError as file_error:
            return f"{path} is not UTF-8: {file_error.reason}"
        except OSError:
            continue
    # oslo.config reads files in the encoding of the locale.
    return f"The configuration contains characters outside the locale's encoding, {error.encoding}: set LANG=C.UTF-8"
