"""The samples in etc/placement match the code; ``make samples`` regenerates them."""

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
from placement import deploy
from tests import web
from tests.clock import PATIENCE

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
def generate(tmp_path_factory):
    """Return a function that generates the text of a sample with the tools of oslo."""
    directory = tmp_path_factory.mktemp("samples")

    def run_generator(kind, configuration):
        output = directory / kind
        arguments = [f"--config-file={SAMPLES / configuration}", f"--output-file={output}"]
        subprocess.run(
            [sys.executable, "-c", GENERATE, kind, *arguments],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            cwd=directory,
            check=True,
            timeout=PATIENCE,
        )
        return output.read_text()

    return run_generator


def blocks(text):
    """Return the text of a configuration sample, by section and owner of the options."""
    blocks = {}
    for section in re.split(r"^(?=\[\w+\]$)", text, flags=re.MULTILINE)[1:]:
        group = section.partition("]")[0].removeprefix("[")
        for block in re.split(r"^#\n# From (?=[\w.]+\n#\n)", section, flags=re.MULTILINE)[1:]:
            owner, _, content = block.partition("\n#\n")
            blocks[group, owner] = content.strip()
    return blocks


def test_the_configuration_sample_is_up_to_date(generate):
    expected, sample = (
        blocks(generate("options", "config-generator.conf")),
        blocks((SAMPLES / "placement.conf.sample").read_text()),
    )
    assert {group for group, owner in sample if owner == OURS} == {
        group or "DEFAULT" for group, _ in options.list_opts()
    }
    assert expected.keys() == sample.keys()
    for (group, owner), text in expected.items():
        if owner == OURS:
            assert sample[group, owner] == text, f"[{group}] is stale: run `make samples`"


def test_the_sample_shows_the_services_defaults_of_library_options():
    """Only the defaults are compared: the other text of library options changes with the library's version."""
    sample = blocks((SAMPLES / "placement.conf.sample").read_text())
    conf = web.configuration()
    defaults = dict(re.findall(r"^#(\w+) = (.*)$", sample["cors", "oslo.middleware.cors"], flags=re.MULTILINE))
    for name in ("allow_headers", "expose_headers", "allow_methods"):
        assert defaults[name].split(",") == conf.cors[name]
    user_file = f"#http_basic_auth_user_file = {conf.oslo_middleware.http_basic_auth_user_file}"
    assert user_file in sample["oslo_middleware", "oslo.middleware.basic_auth"].splitlines()


def test_the_policy_sample_is_up_to_date(generate):
    sample = (SAMPLES / "policy.yaml.sample").read_text()
    assert sample == generate("rules", "policy-generator.conf"), "stale: run `make samples`"


def test_the_policy_sample_contains_the_default_rules():
    text = (SAMPLES / "policy.yaml.sample").read_text()
    rules = yaml.safe_load(re.sub(r'^#"', '"', text, flags=re.MULTILINE))
    assert {name: policy.RuleDefault(name, rule).check_str for name, rule in rules.items()} == {
        rule.name: rule.check_str for rule in deploy.list_rules()
    }
