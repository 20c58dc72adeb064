"""The schema of a database: its tables, its revision, its clock.

tables              the tables
schema, revisions   the revision of a database, and the ways to change it
clock               the database's time, as an SQL expression
"""
