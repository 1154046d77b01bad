"""From a request to an endpoint's method and back: arguments, execution, response."""
