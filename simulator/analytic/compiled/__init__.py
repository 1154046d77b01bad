"""The fixed point of ``simulator.analytic`` in machine code: the same steps in the same order (`mup.native`).

``structure`` makes arrays (``records``) of the layers of a model, ``tapes`` of the graphs of its entries.
``entry_times``, ``evaluation`` and ``loads`` are what its requests take and ask, ``views``, ``networks`` and
``queues`` what they meet, ``feedback`` immediate returns; ``iteration`` goes round. The plain Python of
``simulator.analytic`` says what each step means and where it is from; names are the same.
"""
