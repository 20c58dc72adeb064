"""The documents of the Placement API at every version: bodies, queries and responses.

A module per noun declares them, and each ``Field`` states the versions in which it exists.  A ``Body`` or a ``Query``
renders its declaration for a version as JSON schema, compiles it at the first use and caches it.

Besides the modules of nouns:

declarations        types of values, and fields
success             responses to successful requests, as endpoints declare them
reply_types         types that the responses of several nouns share
document            Body and Query, which endpoints declare and handlers receive
validator           validation of values, by the jsonschema-rs library
explanation         the sentence about an invalid value, in the words of the jsonschema library
violation           an invalid value in one line: the field, the problem and the valid values
claim               conversion of valid bodies to the claims of ``objects``
dates               dates and times as text
dry_run             the response to a dry run
"""
