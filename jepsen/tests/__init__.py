"""The tests of the package itself, which ``make jepsen`` runs."""
