"""The v1 API (docs: v1): explanations, counts, history and overviews, and claims whose places the service chooses.

api, handlers, schemas         routes, and the documents they read and return
claims, claim_creation         claims whose places the service chooses
bulk_release                   the release of many consumers
pick                           the choice of a place for each of many consumers
explain, count                 the reasons why a request does not fit, and the number of times that it fits
request_query, query_text      search queries read from requests, and written as query strings
history, event_reader          recorded changes and past states, and requests for events
overview                       providers and their usage, now and in the past
openapi                        the APIs as OpenAPI documents
worker_examination             examinations by the doctor
lookup, nodes                  providers and nodes by name
overlay                        the usage that picks add to a snapshot
failures, error_documents      the failures of this API, and how it reports them
policy, metrics, signals       policy rules, metrics, and the signals that update them
extension                      the declaration of this package as an extension of the service
"""
