"""placement-ask: questions of operators and claims, in a terminal, without the client of OpenStack (docs: ask).

    main                                       the program, and the exit codes of failures
    commands                                   the command line, and what each command asks
    answer, watching                           what a command shows, once or again and again
    query                                      the arguments that a query is made of
    address                                    where the service is, and who asks
    client, paging                             requests to the API below /v1
    failures                                   why there is no answer, in a sentence
    filters                                    the options of overview and consumers
    claiming, releasing                        the options of claim, extend and release, and what they send
    explain, capacity, overview, consumers     the columns, rows and lines that show a document
    usage, doctor, claims                      those of usage over time, of findings, of what was claimed and released
    events, event_lines                        what has changed, and what comes
    openstack                                  commands of ``openstack``, which show the same rows
    extension                                  what the client adds to the service
    completion                                 the scripts with which shells complete its words
    tables, style                              tables as wide as the terminal, colours

It needs the standard library alone, but for the scripts of shells, and uses the API below /v1 and no other.
"""
