"""Which deployment should be run? The cheapest that meets objectives, the largest load, what to make faster.

``slo`` says what an objective is, ``prices`` what a deployment costs, ``space`` which deployments there are.
``judge`` tells whether one of them meets the objectives (``capacity`` where no simulation is needed),
``search`` finds the cheapest, ``plan`` puts the answer together, ``load`` finds the largest load, ``chance``
says how probably a real run agrees, and ``levers`` what makes the figures better.
"""
