"""The manifests of deploy/kubernetes match the schemas of Kubernetes, each other, the image and the service."""

from __future__ import annotations

import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from keystonemiddleware import auth_token

from placement import conf as options
from tests.docs.blocks import PAGES, blocks
from tests.docs.run_by import blocks_of

ROOT = Path(__file__).parents[2]
BASE = ROOT / "deploy/kubernetes"
PAGE = "docs/containers.rst"
CONTAINERFILE = (ROOT / "Containerfile").read_text()
UWSGI = (ROOT / "etc/uwsgi/placement.ini").read_text()
#: The file that Kustomize reads.
KUSTOMIZATION = yaml.safe_load((BASE / "kustomization.yaml").read_text())
#: Versions of Kubernetes with a schema: the oldest that has every field of the manifests, and the newest.
VERSIONS = ("1.28", kubernetes_validate.latest_version())


@pytest.fixture(scope="module")
def manifests():
    """Return the resources in the files, by kind."""
    resources = [yaml.safe_load((BASE / name).read_text()) for name in KUSTOMIZATION["resources"]]
    assert len({resource["kind"] for resource in resources}) == len(resources)
    return {resource["kind"]: resource for resource in resources}


@pytest.fixture(scope="module")
def pods(manifests):
    """Return the pod templates, by the kind of their controller."""
    return {
        kind: manifest["spec"]["template"] for kind, manifest in manifests.items() if "template" in manifest["spec"]
    }


def container(pod):
    (container,) = pod["spec"]["containers"]
    return container


def controllers_of(pods, selector):
    """Return the kinds of the controllers whose pods a selector matches."""
    return {kind for kind, pod in pods.items() if selector.items() <= pod["metadata"]["labels"].items()}


def test_the_kustomization_lists_every_file():
    files = {path.name for path in BASE.iterdir()} - {"kustomization.yaml"}
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    assert {*KUSTOMIZATION["resources"], *generated["files"]} == files


@pytest.mark.parametrize("version", VERSIONS)
def test_the_resources_fit_their_schemas(manifests, version):
    assert set(manifests) == {"Deployment", "Job", "Service", "PodDisruptionBudget", "NetworkPolicy"}
    for manifest in manifests.values():
        kubernetes_validate.validate(manifest, version, strict=True)


def test_selectors_match_the_serving_pods_only(manifests, pods):
    serving = manifests["Deployment"]["spec"]
    (spread,) = serving["template"]["spec"]["topologySpreadConstraints"]
    for selector in (
        serving["selector"]["matchLabels"],
        spread["labelSelector"]["matchLabels"],
        manifests["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
        manifests["Service"]["spec"]["selector"],
    ):
        assert controllers_of(pods, selector) == {"Deployment"}


def test_the_network_policy_applies_to_all_pods(manifests, pods):
    assert controllers_of(pods, manifests["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]) == {
        "Deployment",
        "Job",
    }


def test_the_ports_match_the_image(manifests, pods):
    serving = container(pods["Deployment"])
    (port,) = serving["ports"]
    assert f"EXPOSE {port['containerPort']}\n" in CONTAINERFILE
    (service_port,) = manifests["Service"]["spec"]["ports"]
    (rule,) = manifests["NetworkPolicy"]["spec"]["ingress"]
    assert service_port["targetPort"] == port["name"]
    assert rule["ports"] == [{"port": port["containerPort"]}]
    probes = [probe["httpGet"] for name, probe in serving.items() if name.endswith("Probe")]
    assert {probe["port"] for probe in probes} == {port["name"]}
    assert len(probes) == 3


def test_no_pod_is_killed_because_the_database_is_down(pods):
    """GET /healthcheck queries the database, and GET / does not (tests/db/test_health.py)."""
    paths = {
        name: probe["httpGet"]["path"]
        for name, probe in container(pods["Deployment"]).items()
        if name.endswith("Probe")
    }
    assert paths == {"startupProbe": "/", "livenessProbe": "/", "readinessProbe": "/healthcheck"}


def test_a_terminating_pod_has_more_time_than_uwsgi_gives_its_workers(pods):
    pod = pods["Deployment"]["spec"]
    pause = container(pods["Deployment"])["lifecycle"]["preStop"]["exec"]["command"]
    mercy = re.search(r"^worker-reload-mercy = (\d+)", UWSGI, re.MULTILINE)
    assert pod["terminationGracePeriodSeconds"] > int(mercy[1]) + int(pause[1])


@pytest.mark.parametrize("kind", ["Deployment", "Job"])
def test_pods_have_no_more_rights_than_they_need(pods, kind):
    pod, user = pods[kind]["spec"], int(re.search(r"^USER (\d+):", CONTAINERFILE, re.MULTILINE)[1])
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"].items() >= {"runAsNonRoot": True, "runAsUser": user, "runAsGroup": user}.items()
    assert container(pods[kind])["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_pods_are_configured_by_the_file_and_the_secret(pods):
    (generated,) = KUSTOMIZATION["configMapGenerator"]
    for pod in pods.values():
        assert container(pod)["envFrom"] == [{"secretRef": {"name": "placement"}}]
        assert container(pod)["image"] == "placement"
        sources = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
        mounts = {mount["mountPath"]: sources[mount["name"]] for mount in container(pod)["volumeMounts"]}
        assert mounts["/etc/placement"]["configMap"] == {"name": generated["name"]}
        assert "emptyDir" in mounts["/tmp"]
        assert ("/dev/shm" in mounts) == (pod is pods["Deployment"])
        assert len(mounts) == len(sources)


def test_the_file_and_the_secret_of_the_page_are_a_complete_configuration(monkeypatch):
    (secret,) = blocks_of(__file__, PAGE, "placement.env")
    for line in secret.text.splitlines():
        monkeypatch.setenv(*line.split("=", 1))
    monkeypatch.setenv(options.CONFIG_DIR_VARIABLE, str(BASE))
    conf = options.load()
    assert (conf.api.auth_strategy, options.find_unknown(conf)) == ("keystone", [])
    assert conf.placement_database.connection.startswith("mysql+pymysql://placement:")
    keystone = auth_token.AuthProtocol(None, {"oslo_config_config": conf})
    assert keystone._auth.auth_url == "https://identity.example.org"
    assert (keystone._auth._username, keystone._auth._password) == ("placement", "secret")


def test_the_commands_of_the_page_name_existing_resources(manifests):
    (block,) = (candidate for candidate in blocks(PAGES[PAGE]) if candidate.text.startswith("kubectl "))
    names = {tuple(word.split("/")) for word in block.text.split() if "/" in word}
    existing = {(kind.lower(), manifest["metadata"]["name"]) for kind, manifest in manifests.items()}
    assert names == {("job", "placement-db-sync"), ("deployment", "placement")} <= existing
