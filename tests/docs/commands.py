"""Static checks of commands in the pages: the programs, commands and options exist."""

from __future__ import annotations

import argparse
import configparser
import contextlib
import importlib.metadata
import io
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

from oslo_config import cfg

from jepsen import __main__ as jepsen
from placement import conf as options
from placement.cmd import api, manage, metrics, serve, status
from placement.extensions.terminal import commands as ask
from tests.docs.blocks import ROOT
from tests.transcripts import is_complete
from tools import compare_with_original

#: Programs whose arguments are not checked, and keywords of the shell.  Other tests run most of them.
_UNCHECKED = {
    *(
        "a2dissite",
        "a2ensite",
        "ansible",
        "apt-mark",
        "break",
        "cat",
        "cd",
        "createdb",
        "curl",
        "docker",
        "done",
        "dropdb",
        "echo",
        "export",
        "for",
        "go",
        "grep",
        "head",
        "helm",
        "htpasswd",
        "kolla-ansible",
        "kolla-build",
        "kubectl",
        "mv",
        "openstack-ansible",
    ),
    *("install", "mkdir", "mariadb", "mariadb-binlog", "mariadb-dump", "nova-status", "openapi-generator-cli"),
    *(
        "openssl",
        "pg_basebackup",
        "pg_dump",
        "pg_restore",
        "pkill",
        "podman",
        "podman-compose",
        "psql",
        "sed",
        "seq",
        "socat",
    ),
    *("source", "sqlite3", "unset", "useradd", "uwsgi"),
}
_SETUP = configparser.ConfigParser()
_SETUP.read(ROOT / "setup.cfg")
_MAKEFILE = (ROOT / "Makefile").read_text()
_SAMPLES = {path.name for path in (ROOT / "etc").rglob("*")}
#: The commands of the OpenStack client, as ``noun_verb``.
_CLIENT = importlib.metadata.EntryPoints(
    command
    for group in ("identity.v3", "compute.v2", "placement.v1", "baremetal.v1")
    for command in importlib.metadata.entry_points(group=f"openstack.{group}")
)
#: The object from which the commands of osc-placement read the version of the API.
_NEWEST = SimpleNamespace(client_manager=SimpleNamespace(placement=SimpleNamespace(api_version="1.39")))


class WrongCommand(AssertionError):
    """A command is wrong for the reason in the message."""


def check(text: str) -> None:
    """Check the commands of a shell; raise WrongCommand for an error."""
    functions = set(re.findall(r"^(\w+)\(\)", text, re.MULTILINE))
    for words in _commands(_replace_variables(text)):
        program = Path(words[0]).name
        if program in functions | _UNCHECKED:
            continue
        if program not in _PROGRAMS:
            raise WrongCommand(f"{program} is not known to tests/docs/commands.py: {shlex.join(words)}")
        try:
            with contextlib.redirect_stderr(io.StringIO()) as output, contextlib.redirect_stdout(io.StringIO()):
                _PROGRAMS[program](words[1:])
        except (SystemExit, cfg.Error, ValueError, argparse.ArgumentTypeError) as error:
            if isinstance(error, SystemExit) and not error.code:
                continue  # it prints its text and exits
            raise WrongCommand(f"{shlex.join(words)}\n{output.getvalue() or error}") from error


def _replace_variables(text: str) -> str:
    """Return the commands with single-word variables replaced by their values, and loop variables by the first one."""
    values = dict(re.findall(r"(?:^|\bfor )(\w+)(?:=| in )([\w-]+)\b(?![^ ;\n])", text, re.MULTILINE))
    return re.sub(r"\$(\w+)", lambda match: values.get(match[1], match[0]), text)


def prompted_commands(text: str) -> Iterator[str]:
    """Yield the commands of a block with output: the lines that begin with ``$``, and their continuation lines."""
    command = ""
    for line in text.splitlines():
        if not command and not line.startswith("$ "):
            continue
        command = f"{command}\n{line}" if command else line.removeprefix("$ ")
        if is_complete(command):
            yield command
            command = ""


def _commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command, without assignments, redirections and leading keywords of the shell."""
    for inner in re.findall(r"\$\(([^()]*)\)", text):
        yield from _commands(inner)
    text = re.sub(r"\$\([^()]*\)", "substituted", text).replace("\\\n", " ")
    pending = ""
    for line in text.splitlines():
        pending = f"{pending}\n{line}" if pending else line
        if not is_complete(pending):
            continue
        yield from _simple(pending)
        pending = ""
    if pending:
        raise WrongCommand(f"not complete: {pending}")


def _simple(line: str) -> Iterator[list[str]]:
    tokens = shlex.shlex(line, posix=True, punctuation_chars=True)
    tokens.whitespace_split = True
    words: list[str] = []
    redirected = False
    for token in [*tokens, ";"]:
        if re.fullmatch(r"[();|&]+", token):
            if words and token != "()":
                yield words
            words = []
        elif redirected:
            redirected = False
        elif re.fullmatch(r"[<>&]+", token):
            redirected = True
        elif words or not re.match(r"\w+=|(do|then|\{|\})$", token):
            words.append(token)


# --- programs --------------------------------------------------------------------------------------------------------


def _configured_parser(add_commands: Callable[..., None]) -> Callable[[list[str]], None]:
    """Return a parser of a command that reads the configuration."""

    def parse(words: list[str]) -> None:
        conf = cfg.ConfigOpts()
        options.register(conf)
        conf.set_default("connection", "sqlite://", group="placement_database")
        conf.register_cli_opt(cfg.SubCommandOpt("command", dest="command", handler=add_commands))
        conf(words, version="1.0.0", default_config_files=[], default_config_dirs=[])
        if conf.command.name is None:
            raise ValueError("no command")

    return parse


def _openstack(words: list[str]) -> None:
    if words[0] == "--os-placement-api-version":
        words = words[2:]
    for length in range(len(words), 0, -1):
        for match in _CLIENT.select(name="_".join(words[:length])):
            with warnings.catch_warnings(action="ignore"):
                command = match.load()
            command(_NEWEST, None).get_parser(match.name).parse_args(words[length:])
            return
    raise ValueError("no such command")


def _make(words: list[str]) -> None:
    target, *variables = words
    _expect(target in re.search(r"^\.PHONY: (.*)", _MAKEFILE, re.MULTILINE)[1].split(), "no such target")
    for variable in variables:
        name, _, value = variable.partition("=")
        _expect(name in ("ARGS", "PYTHON"), "no such variable")
        if target in ("serve", "demo"):
            serve._parser().parse_args(shlex.split(value))


def _pip(words: list[str]) -> None:
    """Check the extras of this package; other packages are only named."""
    _expect(words[0] in ("install", "uninstall"), "not an action")
    for word in words[1:]:
        if match := re.fullmatch(r"[./].*?(?:\[([\w,]+)\])?", word):
            extras = (match[1] or "").split(",") if match[1] else []
            _expect({*extras} <= {*_SETUP["options.extras_require"]}, f"not all of {extras} are extras")


def _apt(words: list[str]) -> None:
    """Check that the tests also install the packages; apache2 includes the modules and tools of apache2-bin."""
    _expect(words[0] == "install", "not an action")
    for name in words[1:]:
        _expect(re.search(rf"[ \t]{re.escape(name)}(-bin)?(?= )", _MAKEFILE), f"{name} is not in the Makefile")


def _pytest(words: list[str]) -> None:
    """Check that the files exist; a word with a leading dash, and its number, is an option."""
    for word in words:
        if not word.startswith("-") and not word.isdigit():
            _expect((ROOT / word).exists(), f"there is no {word}")


def _copy(words: list[str]) -> None:
    for source in words[:-1]:
        _expect([*ROOT.glob(source)], f"there is no {source}")


def _python(words: list[str]) -> None:
    if words[:2] == ["-m", "jepsen"]:
        jepsen._parser().parse_args(words[2:])
    elif words[0] == "compare_with_original.py":
        compare_with_original._parse(words[1:])
    else:
        # book.py belongs to the tutorial, which a test runs.
        _expect(words[:2] == ["-m", "venv"] or words[0] == "book.py", "not known")


def _namespace_parser(group: str) -> Callable[[list[str]], None]:
    """Return a parser of a library's tools, which find this service by its name."""

    def parse(words: list[str]) -> None:
        names = re.findall(r"^(\S+) =", _SETUP["options.entry_points"][group], re.MULTILINE)
        _expect(words[0] == "--namespace" and words[1] in names, f"the names are {names}")

    return parse


def _systemctl(words: list[str]) -> None:
    for unit in words[1:]:
        _expect(
            unit in ("--now", "apache2", "placement-api") or {unit, f"{unit}.service"} & _SAMPLES,
            f"there is no unit {unit}",
        )


def _modules(words: list[str]) -> None:
    """Check that the tests of the samples load the modules."""
    loaded = (ROOT / "tests/web_servers.py").read_text()
    for name in words:
        _expect(re.search(rf'"{name}"|LoadModule {name}_module', loaded), f"no test loads {name}")


def _runuser(words: list[str]) -> None:
    _expect(words[:3] == ["-u", "placement", "--"], "not the user of the service")
    check(shlex.join(words[3:]))


def _expect(condition: object, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)


_PROGRAMS: dict[str, Callable[[list[str]], object]] = {
    "placement-api": api._parser().parse_args,
    "placement-ask": ask.parser().parse_args,
    "placement-manage": _configured_parser(manage._add_commands),
    "placement-metrics": metrics._parser().parse_args,
    "placement-serve": serve._parser().parse_args,
    "placement-status": _configured_parser(status._add_commands),
    "a2enmod": _modules,
    "apt": _apt,
    "cp": _copy,
    "make": _make,
    "openstack": _openstack,
    "oslo-config-generator": _namespace_parser("oslo.config.opts"),
    "oslopolicy-list-redundant": _namespace_parser("oslo.policy.enforcer"),
    "oslopolicy-policy-generator": _namespace_parser("oslo.policy.enforcer"),
    "oslopolicy-sample-generator": _namespace_parser("oslo.policy.policies"),
    "oslopolicy-validator": _namespace_parser("oslo.policy.enforcer"),
    "pip": _pip,
    "pytest": _pytest,
    "python": _python,
    "python3": _python,
    "runuser": _runuser,
    "systemctl": _systemctl,
}
