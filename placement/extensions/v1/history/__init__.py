"""The recorded past: events, and the state of all at a time.

event        events with who caused them
past_events  events that have to be undone
past         the index as it was
"""
