"""Runtime of services: an HTTP front, its pool of workers, and the launcher of whole projects.

From the ground up; a room imports from its own and from lower ones:

protocol    what passes between processes: frames, headers, cookies, tokens, ids of traces
process     what every process of a service does: log, import classes, choose an event loop and a core
client      calls to other services
server      HTTP: connections, requests, heads of responses, files
endpoint    from a request to an endpoint's method and back: arguments, execution, response
worker      what runs endpoints: processes, threads, tasks of an event loop
pool        the queue of requests (front), and the workers that are started, watched, replaced
deployment  the launcher of a project, and the registration of replicas
replica     one replica, a process of its own: import, bind, fork, register, serve, drain

launcher -> replica -> front   (its event loop: queue, workers), behind the server
                    -> worker  (a forked child: runs endpoint methods, calls, queries)
"""
