"""placement-ask: questions of operators and claims, in a terminal, without the client of OpenStack (docs: ask).

    main                                       the command line and the exit code
    query                                      the arguments that a query is made of
    address                                    where the service is, and who asks
    client, paging                             requests to the API below /v1
    failures                                   why there is no answer, in a sentence
    filters                                    the options of overview and consumers
    claiming, releasing                        the options of claim, extend and release, and what they send
    explain, capacity, overview, consumers     the lines that show a document
    doctor, events                             those of findings, and of what has changed
    openstack                                  commands of ``openstack``
    extension                                  what the client adds to the service
    claims                                     those that show what was claimed and released
    tables, style                              tables as wide as the terminal, colours

It needs the standard library alone, and uses the API below /v1 and no other.
"""
