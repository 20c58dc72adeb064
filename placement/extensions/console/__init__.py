"""The console: web pages about the cloud, below /console (docs: console).

    api            routes, open paths, headers of every response
    handlers       one module per page: its query and the values for its template
    dry_runs       dry runs of writes, sent to the endpoints of the APIs
    timeline       the events of a provider, a node or a consumer, page by page
    past           the providers at a point in time in the past
    machine_names  providers shown under the names of their machines
    views          view models: frozen values made from a snapshot
    pages          rendering of templates, error pages
    templates      HTML, by Jinja2
    assets         style sheets and ES modules, served unchanged
    extension      the declaration of the extension

The console is read-only and makes no decisions: every number comes from the index, the search, the tables, or the
endpoint of a dry run, under the policy rule of the API that returns the same data.
"""
