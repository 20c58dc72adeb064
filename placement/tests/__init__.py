"""Import paths of our fixtures for tests of other projects; our own tests are in the repository's tests/."""
