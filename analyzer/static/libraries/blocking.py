"""Which functions of libraries wait for something outside of mup, which the model does not know of?"""

from __future__ import annotations

__all__ = ["blocks", "blocks_loop"]

CLIENTS = {
    "aiohttp",
    "aiomysql",
    "aioredis",
    "asyncpg",
    "boto3",
    "elasticsearch",
    "ftplib",
    "grpc",
    "http.client",
    "httpx",
    "kafka",
    "mysql.connector",
    "paramiko",
    "pika",
    "psycopg",
    "psycopg2",
    "pymongo",
    "pymysql",
    "redis",
    "requests",
    "smtplib",
    "urllib.request",
    "urllib3",
    "xmlrpc.client",
}
"""Modules whose functions and classes talk to other programs."""

PASSIVE = {
    "exceptions",
    "errors",
    "error",
    "status_codes",
    "codes",
    "Timeout",
    "Limits",
    "Headers",
    "Request",
    "Retry",
    "quote",
    "ClientTimeout",
}
"""Names in these that wait for nothing."""

WAITING = {
    "os.popen",
    "os.system",
    "os.wait",
    "os.waitpid",
    "socket.create_connection",
    "socket.getaddrinfo",
    "socket.gethostbyname",
    "subprocess.Popen",
    "subprocess.call",
    "subprocess.check_call",
    "subprocess.check_output",
    "subprocess.getoutput",
    "subprocess.run",
}
"""Other functions and classes that wait for other programs."""

HOLDING = {"time.sleep", "signal.pause", "builtins.input"}
"""What holds the thread: fine where each request has its own, and what stops all others on an event loop."""


def blocks(name: str) -> bool:
    """Return whether a function waits for another program, whatever its runtime."""
    parts = name.split(".")
    if name in WAITING:
        return True
    known = any(".".join(parts[:size]) in CLIENTS for size in (1, 2) if size < len(parts))
    return (
        known and not PASSIVE & set(parts[1:]) and not parts[-1].endswith(("Error", "Exception", "Warning"))
    )


def blocks_loop(name: str) -> bool:
    """Return whether a function holds the thread without asking another program."""
    return name in HOLDING
