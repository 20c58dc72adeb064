"""Upkeep of a database's rows.

standard  the rows that every database contains
online    online data migrations, which complete the rows of older releases
sweep     the removal of unused names
"""
