"""What keeps the rows of a database right.

standard  the rows that every database has
online    completion of rows that older releases left incomplete
sweep     removal of names that nothing refers to
"""
