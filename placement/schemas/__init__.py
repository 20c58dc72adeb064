"""The documents of the Placement API at every version: bodies, queries and replies of the routes.

One module per noun declares them; a ``Field`` has the versions in which it exists.  A ``Body`` or a ``Query`` renders
its declaration for a version as JSON schema, compiles it at the first use and keeps it.

``declarations``      the vocabulary of the declarations
``success``           what a successful reply is; ``reply_types``: types that the replies of several nouns share
``document``          Body and Query, which endpoints declare and handlers receive
``validator``         validates values, by the jsonschema-rs library
``explanation``       the sentence for an invalid value, by the jsonschema library
``claim``             from a valid body to the claims of ``objects``
``dry_run``           the reply to a dry run of any write
"""
