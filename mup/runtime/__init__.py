"""Runtime of services: an HTTP front, its pool of workers, and the launcher of whole projects.

launcher -> replica (one process per replica: import, bind, fork, register, serve, drain)
              front   (its event loop: queue, workers)
                http_server -> http_connection -> http_request, http_head; file_response
              worker  (a forked child: runs endpoint methods)
                served_request; worker_communication, awaited_communication -> client (calls), mup.databases
wire: the frames between front and worker
"""
