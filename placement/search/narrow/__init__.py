"""Narrowing: every rule of a request as a set operation over all providers."""
