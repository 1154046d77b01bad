from . import orders, users
