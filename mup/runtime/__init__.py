"""How a service runs: an HTTP front and its pool of worker processes, and the launcher of whole projects.

launcher -> replica (one process per replica: import, bind, fork, register, serve, drain)
              front   (its event loop: HTTP in, queue, workers, HTTP out)
              worker  (a forked child: runs endpoint methods)
                worker_communication -> calls -> resolver, http_client; mup.databases
wire: the frames between front and worker
"""
