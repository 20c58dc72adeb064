"""The import path of the fixtures for tests of other projects; the service's own tests are in tests/."""
