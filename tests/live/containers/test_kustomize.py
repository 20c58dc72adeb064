"""deploy/kubernetes with the overlay of docs/containers.rst, combined by kustomize."""

from __future__ import annotations

import kubernetes_validate
import pytest
import yaml

from tests.docs.blocks import ROOT, text_of
from tests.docs.run_by import blocks_of

pytestmark = pytest.mark.xdist_group("containers")

PAGE = "docs/containers.rst"
#: The path of the checkout in the overlay of the page.
BASE = "/work/placement-service/deploy/kubernetes"


@pytest.fixture(scope="module")
def manifests(engine, tmp_path_factory):
    """The manifests for `kubectl apply`."""
    directory = tmp_path_factory.mktemp("overlay")
    (kustomization,) = blocks_of(__file__, PAGE, "kustomization.yaml")
    (directory / "kustomization.yaml").write_text(kustomization.text)
    (directory / "placement.env").write_text(text_of(PAGE, "placement.env"))
    mounts = (f"--volume={ROOT}/deploy/kubernetes:{BASE}:ro", f"--volume={directory}:/work/cloud:ro")
    output = engine.podman("run", "--rm", *mounts, "localhost/kustomize", "build", "/work/cloud")
    return [*yaml.safe_load_all(output)]


def test_the_manifests_fit_their_schemas(manifests):
    for manifest in manifests:
        kubernetes_validate.validate(manifest, kubernetes_validate.latest_version(), strict=True)
        assert manifest["metadata"]["namespace"] == "openstack"


def test_both_pods_have_the_image_the_file_and_the_secret_of_the_overlay(manifests):
    names = {manifest["kind"]: manifest["metadata"]["name"] for manifest in manifests}
    for kind in ("Deployment", "Job"):
        (pod,) = (manifest["spec"]["template"]["spec"] for manifest in manifests if manifest["kind"] == kind)
        (container,) = pod["containers"]
        assert container["image"] == "registry.example.org/placement:1.0.0"
        assert container["envFrom"] == [{"secretRef": {"name": names["Secret"]}}]
        (file,) = (volume for volume in pod["volumes"] if "configMap" in volume)
        assert file["configMap"]["name"] == names["ConfigMap"]
    # Their names depend on their contents, so that a change replaces the pods.
    assert "placement" not in (names["Secret"], names["ConfigMap"])
