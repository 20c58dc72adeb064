"""``placement-ask``, a command-line client of the v1 API for operators (docs: ask).

    main                                       the entry point, and the exit codes of failures
    commands                                   the command line and its commands
    answer, watching                           the output of a command, once or repeatedly
    query                                      the arguments of a query for allocation candidates
    address                                    the URL of the service and the credentials
    client, paging                             requests to the v1 API
    failures                                   sentences for requests that failed
    filters                                    the options of ``overview`` and ``consumers``
    claiming, releasing                        the options and request bodies of ``claim``, ``extend`` and ``release``
    explain, capacity, overview, consumers     columns, rows and lines for a document
    usage_history, doctor, claims              the same for the usage history, findings, and claims
    events, event_lines                        events, past and future
    openstack                                  commands of ``openstack`` that show the same rows
    extension                                  the declaration of the extension
    completion                                 completion scripts for shells
    tables, style                              tables that fit the terminal, and colours

``placement-ask`` requires only the standard library, except for the completion scripts, and uses only the v1 API.
"""
