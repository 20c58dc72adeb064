"""Endpoints of the Bare Metal API, one module for each kind of object."""
