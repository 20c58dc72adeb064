"""The v1 API of this project: answers to the questions of operators, and claims (docs: v1).

api, handlers, schemas         routes, and the documents they read and return
claims, claim_creation         claims whose places the service chooses
bulk_release                   the release of many consumers
pick                           the choice of a place for each of many consumers
explain, count                 why nothing fits, and how many more would
request_query, query_text      search queries read from requests, and written as query strings
history, event_reader          recorded changes, past states, and requests that follow changes
overview                       providers and their usage, now and in the past
openapi                        the APIs as OpenAPI documents
worker_examination             examinations by the doctor
lookup, nodes                  providers and nodes by name
overlay                        usage added to a snapshot by picks
failures, error_documents      the failures of this API, and how it reports them
policy, metrics, signals       rules, metrics, and the events they count
extension                      the declaration of all this as an extension of the service
"""
