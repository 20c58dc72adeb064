"""The console: pages about the cloud for people, below /console (docs: console).

    api         routes, open paths, headers of every reply
    handlers    one module for each page: what it is asked, and what its template gets
    dry_runs    writes of Placement that a page tries
    timeline    what has happened to a provider or a consumer
    views       what pages show, as frozen values that are made from a snapshot
    pages       templates to replies
    templates   HTML, by Jinja2
    assets      the style sheet and ES modules, served as they are

It changes nothing and decides nothing: every number comes from the index, the search, the tables, or the endpoint whose
write is tried, under the policy rules of the API that gives the same answer.
"""
