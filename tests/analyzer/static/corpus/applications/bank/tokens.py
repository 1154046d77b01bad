import base64
import json


class TokenError(Exception):
    pass


def decode(token):
    """The claims of a token; the gateway in front of us has checked the signature."""
    if not token:
        raise TokenError("no token")
    try:
        return json.loads(base64.b64decode(token))
    except ValueError as error:
        raise TokenError("no valid token") from error


def encode(claims):
    return base64.b64encode(json.dumps(claims).encode()).decode()
