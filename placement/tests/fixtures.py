"""The import path of the database fixture that other projects use."""

from placement.testing import Database

__all__ = ["Database"]
