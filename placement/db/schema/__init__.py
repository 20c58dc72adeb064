"""What a database looks like: its tables, its revision, its clock.

tables              the tables
schema, revisions   the revision of a database, and the ways to change it
clock               the time of a database
"""
