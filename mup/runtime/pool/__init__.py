"""The pool of a replica: the queue of requests, and the workers that are started, watched and replaced."""
