"""What the body and the query of each route look like, at every version.

A module per noun declares shapes once; a ``Field`` knows from which version until which it lives.  A ``Body`` or a
``Query`` renders its shape for a version as JSON schema, compiles it at first use and keeps it.

``shape``      the words the declarations are made of
``check``      a rendered schema compiled to functions: what every valid request pays
``violation``  the sentence for a value that does not conform, by the jsonschema library: what only a refused one pays
``document``   Body and Query, which the handlers see
"""
