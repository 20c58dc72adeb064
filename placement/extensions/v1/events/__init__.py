"""Events as clients get them: by waiting, in a stream, and as the story of one object.

following     a stream of events, and requests that wait for one
recent_pages  the newest pages, for those that may not wait
story         what happened to one object
"""
