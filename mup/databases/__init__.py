"""Databases: one driver per URI scheme behind one small interface, and starting one for a project.

command      what a ``qry_txt`` may say
driver       the interface, and which scheme is served by which driver
mongo        MongoDB for blocking workers (PyMongo)
mongo_async  MongoDB for asynchronous code (motor)
runner       queries on auxiliary threads, so that a worker can go on meanwhile
server       start the embedded database, or check the one a project names
"""
