"""The name under which other projects know the fixture of a database."""

from placement.testing import Database

__all__ = ["Database"]
