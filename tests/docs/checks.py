"""Static checks of the content of blocks, whether or not a test runs them; they need no server."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import yaml
from keystoneauth1 import loading
from keystonemiddleware.opts import list_auth_token_opts
from openstack.config import OpenStackConfig
from oslo_config import cfg
from oslo_log import log

from placement import conf as options
from placement import deploy, policy
from placement.cmd import metrics
from placement.conf import reading
from placement.extensions.loading.description import read_entries
from placement.extensions.loading.yaml_source import YamlSource
from tests import web
from tests.docs import commands
from tests.docs.blocks import ROOT, Block
from tests.docs.run_by import checked_for, run_by

_COMMAND = re.compile(r"\$ |(sudo )?(placement-\w+|openstack|make|curl|pip|apt) |\[\w+\]$")
#: Directives of logrotate, with the form of their arguments.
_LOGROTATE = (
    r"/\S+ \{|\}|daily|weekly|rotate \d+|compress|delaycompress|missingok|notifempty|create 0[0-7]{3} [a-z]+ [a-z]+"
)


#: A page whose extension defines commands, which a test runs.
_OWN_COMMANDS = "docs/whole-extension.rst"


class Wrong(AssertionError):
    """A block is wrong for the reason in the message."""


def check(page: str, block: Block, directory: Path) -> None:
    """Check a block, and that a test runs it or a reason is given why none does.

    Args:
        page: The path of its page from the root.
        directory: An empty directory.

    Raises:
        Wrong: The block is wrong, or no test runs it on this page.
    """
    if block.kind in CHECKS and page != _OWN_COMMANDS:
        CHECKS[block.kind](block.text, directory)
    if block.kind != "text" and run_by(page, block) is None and checked_for(page, block) is None:
        raise Wrong("no test runs this block, and tests/docs/run_by.py has no reason for that")


# --- configuration ---------------------------------------------------------------------------------------------------


def service_options(text: str, directory: Path) -> None:
    """Check a part of placement.conf: the service defines the options, and accepts their values."""
    path = directory / "placement.conf"
    path.write_text(text)
    written = _values_in(path)
    conf = cfg.ConfigOpts()
    options.register(conf)
    log.register_options(conf)
    for group, listed in list_auth_token_opts():
        conf.register_opts(listed, group)
    identity = {name: values[-1] for (group, name), values in written.items() if group == "keystone_authtoken"}
    conf.register_opts(_plugin_options(identity), "keystone_authtoken")
    conf.set_default("connection", "sqlite://", group="placement_database")
    reading.read(conf, [f"--config-file={path}"], default_config_dirs=[], use_env=False)
    options.check(conf)
    for group, name in written:
        _ = conf[name] if group == "DEFAULT" else conf[group][name]
    for url in written.get(("placement_database", "connection"), []):
        sa.make_url(url).get_dialect()


def client_options(text: str, directory: Path) -> None:
    """Check the section with the address of the service in nova.conf."""
    path = directory / "nova.conf"
    path.write_text(text)
    written = _values_in(path)
    options = {name: values[-1] for (_, name), values in written.items()}
    plugin_options = {option.dest for option in _plugin_options(options)} | {"auth_type"}
    if {group for group, _ in written} != {"placement"} or options.keys() - plugin_options:
        raise Wrong(f"keystoneauth has other options: {sorted(plugin_options)}")


def _plugin_options(options: dict[str, str]) -> list[Any]:
    """Return the options of the keystoneauth plugin that ``auth_type`` names."""
    return [*loading.get_auth_plugin_conf_options(options["auth_type"])] if "auth_type" in options else []


def _values_in(path: Path) -> dict[tuple[str, str], list[str]]:
    """Return the values by section and option; raise Wrong for a comment after a value, which oslo.config includes."""
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(str(path), sections).parse()
    values_by_option = {
        (section, name): values for section, names in sections.items() for name, values in names.items()
    }
    for place, values in values_by_option.items():
        if any(re.search(r"\s[#;]", value) for value in values):
            raise Wrong(f"{place}: a comment is a part of the value")
    return values_by_option


def rules(text: str, directory: Path) -> None:
    """Check a policy file."""
    path = directory / "policy.yaml"
    path.write_text(text)
    conf = web.configuration(oslo_policy__policy_file=str(path))
    if mistakes := policy.find_mistakes(conf, deploy.list_rules()):
        raise Wrong("\n".join(mistake.sentence for mistake in mistakes))


def clouds(text: str, directory: Path) -> None:
    """Check a clouds.yaml: openstacksdk provides a plugin with these options for each cloud."""
    path = directory / "clouds.yaml"
    path.write_text(text)
    for name in yaml.safe_load(text)["clouds"]:
        with warnings.catch_warnings(action="ignore"):
            OpenStackConfig(config_files=[str(path)], load_envvars=False).get_one(name).get_auth()


def prometheus(text: str, _: Path) -> None:
    """Check that Prometheus scrapes the port on which placement-metrics listens."""
    port = metrics._parser().get_default("port")
    (job,) = yaml.safe_load(text)["scrape_configs"]
    if job.keys() != {"job_name", "static_configs"}:
        raise Wrong(f"a job of Prometheus has other keys: {sorted(job)}")
    for target in (target for static_config in job["static_configs"] for target in static_config["targets"]):
        if not target.endswith(f":{port}"):
            raise Wrong(f"placement-metrics listens on port {port}, not at {target}")


def part_of_sample(text: str, _: Path) -> None:
    """Check that the lines are in the sample for uWSGI, which the tests of web servers run."""
    lines = (ROOT / "etc/uwsgi/placement.ini").read_text().splitlines()
    if missing := {line for line in text.splitlines() if line} - {line.removeprefix("# ") for line in lines}:
        raise Wrong(f"not in etc/uwsgi/placement.ini: {sorted(missing)}")
    for command in re.findall(r"= (/.*)", text):
        commands.check(command)


def cron(text: str, _: Path) -> None:
    """Check a file of /etc/cron.d: the schedule, the user, and the command."""
    for line in text.splitlines():
        match = re.fullmatch(r"(?:[\d*/,-]+ +){5}placement +(.*)", line)
        if match is None:
            raise Wrong(f"not a line for cron: {line}")
        commands.check(match[1])


def logrotate(text: str, directory: Path) -> None:
    """Check the directives of a logrotate file; if logrotate is installed, run it in debug mode."""
    for line in text.splitlines():
        if line and not re.fullmatch(_LOGROTATE, line.strip()):
            raise Wrong(f"not known: {line}")
    if program := shutil.which("logrotate", path="/usr/sbin:/usr/bin"):
        file = directory / "logrotate.conf"
        file.write_text(re.sub("placement placement", "root root", text))
        file.chmod(0o644)
        result = subprocess.run([program, "-d", file], capture_output=True, text=True, check=False)
        if result.returncode or "error:" in result.stderr:
            raise Wrong(result.stderr)


# --- others ----------------------------------------------------------------------------------------------------------


def console(text: str, _: Path) -> None:
    """Check the commands of a block of commands with their output."""
    command_lines = [*commands.prompted_commands(text)]
    if not command_lines:
        raise Wrong("no command: a block of output is of the language text")
    commands.check("\n".join(command_lines))


def output(text: str, _: Path) -> None:
    """Check that a block is output or a picture, rather than content with its own check."""
    if hidden := [line for line in text.splitlines() if _COMMAND.match(line)]:
        raise Wrong(f"a block of text with commands or configuration: {hidden}")


CHECKS: dict[str, Callable[[str, Path], Any]] = {
    "console": console,
    "shell": lambda text, _: commands.check(text),
    "text": output,
    "json": lambda text, _: json.loads(text),
    "yaml": lambda text, _: read_entries(YamlSource(text)),
    "cluster.yaml": lambda text, _: read_entries(YamlSource(text)),
    "gpus.yaml": lambda text, _: read_entries(YamlSource(text)),
    "ini": service_options,
    "nova.conf": client_options,
    "/etc/placement/uwsgi.ini": part_of_sample,
    "policy.yaml": rules,
    "clouds.yaml": clouds,
    "prometheus.yml": prometheus,
    "/etc/cron.d/placement": cron,
    "/etc/logrotate.d/placement": logrotate,
}
