from lib.clients import ServiceClient, clients
from lib.web import Problem, endpoint_errors, paged, require

__all__ = ["Problem", "ServiceClient", "clients", "endpoint_errors", "paged", "require"]
