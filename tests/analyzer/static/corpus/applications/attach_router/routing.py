from mup import EP


class Router:
    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.routes = []

    def _add(self, path: str, method: str):
        def decorate(function):
            self.routes.append((method, path, function.__name__))
            return EP(f"{self.prefix}{path}", method=method)(function)

        return decorate

    def get(self, path: str):
        return self._add(path, "GET")

    def post(self, path: str):
        return self._add(path, "POST")

    def delete(self, path: str):
        return self._add(path, "DELETE")
