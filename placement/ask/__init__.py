"""placement-ask: the questions that operators ask, in a terminal, without the client of OpenStack (docs: ask).

    main                                       the command line and the exit code
    query                                      the arguments that a query is made of
    address                                    where the service is, and who asks
    client, paging                             requests to the API below /v1
    failures                                   why there is no answer, in a sentence
    filters                                    the options of overview and consumers
    explain, capacity, overview, consumers     the lines that show a document
    tables, style                              tables as wide as the terminal, colours

It needs the standard library alone, and reads the API below /v1 and no other.
"""
