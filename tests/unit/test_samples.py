"""The samples in etc/placement are what the code says; ``make samples`` writes them anew."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from oslo_policy import policy

from placement import conf as options
from placement.policy import RULES
from tests import web

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "etc" / "placement"
OURS = "placement.conf"

GENERATE = """
import sys
from oslo_config import generator as options
from oslo_policy import generator as rules
if sys.argv[1] == "options":
    options.main(sys.argv[2:])
else:
    rules.generate_sample(sys.argv[2:])
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    """Gives the text of a sample as the tools that operators have write it now."""
    directory = tmp_path_factory.mktemp("samples")

    def generate(kind, configuration):
        output = directory / kind
        arguments = [f"--config-file={SAMPLES / configuration}", f"--output-file={output}"]
        subprocess.run(
            [sys.executable, "-c", GENERATE, kind, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=directory,
            check=True,
            timeout=120,
        )
        return output.read_text()

    return generate


def blocks(text):
    """What a sample of options holds, by section and by whose options they are."""
    found = {}
    for section in re.split(r"^(?=\[\w+\]$)", text, flags=re.MULTILINE)[1:]:
        group = section.partition("]")[0].removeprefix("[")
        for block in re.split(r"^#\n# From (?=[\w.]+\n#\n)", section, flags=re.MULTILINE)[1:]:
            owner, _, rest = block.partition("\n#\n")
            found[group, owner] = rest.strip()
    return found


def test_the_sample_of_options_is_not_stale(generated):
    now, kept = (
        blocks(generated("options", "config-generator.conf")),
        blocks((SAMPLES / "placement.conf.sample").read_text()),
    )
    assert {group for group, owner in kept if owner == OURS} == {group or "DEFAULT" for group, _ in options.list_opts()}
    assert now.keys() == kept.keys()
    for (group, owner), text in now.items():
        if owner == OURS:
            assert kept[group, owner] == text, f"[{group}] is stale: `make samples` writes it anew"


def test_the_sample_shows_the_defaults_that_libraries_have_in_this_service():
    """What else libraries say of their options is theirs, and another version of them may say it in other words."""
    kept = blocks((SAMPLES / "placement.conf.sample").read_text())
    conf = web.configuration()
    shown = dict(re.findall(r"^#(\w+) = (.*)$", kept["cors", "oslo.middleware.cors"], flags=re.MULTILINE))
    for name in ("allow_headers", "expose_headers", "allow_methods"):
        assert shown[name].split(",") == conf.cors[name]
    place = f"#http_basic_auth_user_file = {conf.oslo_middleware.http_basic_auth_user_file}"
    assert place in kept["oslo_middleware", "oslo.middleware.basic_auth"].splitlines()


def test_the_sample_of_rules_is_not_stale(generated):
    kept = (SAMPLES / "policy.yaml.sample").read_text()
    assert kept == generated("rules", "policy-generator.conf"), "stale: `make samples` writes it anew"


def test_the_sample_of_rules_changes_nothing_when_it_is_put_to_use():
    text = (SAMPLES / "policy.yaml.sample").read_text()
    rules = yaml.safe_load(re.sub(r'^#"', '"', text, flags=re.MULTILINE))
    assert {name: policy.RuleDefault(name, rule).check_str for name, rule in rules.items()} == {
        rule.name: rule.check_str for rule in RULES
    }
