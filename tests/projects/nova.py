"""A fixture like the one that nova's functional tests derive, with their client."""

from keystoneauth1 import adapter, session

from placement.tests.functional.fixtures import placement as fixtures


class PlacementFixture(fixtures.PlacementFixture):
    """The service with a client that has its own session and is authenticated only by the token."""

    def setUp(self):
        super().setUp()
        self._client = adapter.Adapter(session.Session(auth=None), raise_exc=False)

    def ask(self, method, url, version="1.36", **options):
        headers = {"x-auth-token": self.token, "OpenStack-API-Version": f"placement {version}"}
        return self._client.request(url, method, endpoint_override=self.endpoint, headers=headers, **options)

    def add_host(self, name="host", vcpus=8):
        """Create a provider, and return its uuid."""
        uuid = self.ask("POST", "/resource_providers", json={"name": name}).json()["uuid"]
        inventories = {"resource_provider_generation": 0, "inventories": {"VCPU": {"total": vcpus}}}
        assert self.ask("PUT", f"/resource_providers/{uuid}/inventories", json=inventories).status_code == 200
        return uuid

    def claim(self, consumer, uuid, vcpus=1):
        """Claim, and return the status of the response."""
        claim = {
            "allocations": {uuid: {"resources": {"VCPU": vcpus}}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
        }
        return self.ask("PUT", f"/allocations/{consumer}", "1.28", json=claim).status_code

    def usage(self, uuid):
        return self.ask("GET", f"/resource_providers/{uuid}/usages").json()["usages"]["VCPU"]

    def hosts(self):
        return {provider["name"] for provider in self.ask("GET", "/resource_providers").json()["resource_providers"]}
