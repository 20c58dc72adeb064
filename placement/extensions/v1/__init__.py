"""The API of this project's own, below /v1: answers to the questions of operators, and claims (docs: v1).

api, handlers, schemas    routes, and what they read and show
claims, releasing         claims whose places the service chooses, and the end of named ones
pick                      the choice of a place for each of many consumers
explain, count            why nothing fits, and how many more would
searching, query_text     queries that several routes take, and the text of one
events, history           what has changed, as it happens and of one object, and past states
overview                  what there is, and what is used of it
openapi                   the APIs as OpenAPI documents
examining                 examinations by the doctor
lookup, failures, policy  providers by name, and the API's own failures and rules
"""
