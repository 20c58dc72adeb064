"""The documents of the Placement API at every version: bodies, queries and responses.

A module per noun declares them; a ``Field`` states the versions in which it exists.  A ``Body`` or a ``Query`` renders
its declaration for a version as JSON schema, compiles it at the first use and caches it.

Beside the modules of nouns:

declarations        types of values, and fields
success             responses to successful requests, as endpoints declare them
reply_types         types that the responses of several nouns share
document            Body and Query, which endpoints declare and handlers receive
validator           validation of values, by the jsonschema-rs library
explanation         the sentence about an invalid value, by the jsonschema library
violation           the same in one line, for APIs whose clients do not match sentences
claim               from a valid body to the claims of ``objects``
dates               dates as text
dry_run             the response to a dry run
"""
