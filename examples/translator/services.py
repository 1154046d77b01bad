"""The translator: A looks a word up in a dictionary and lets B write the translation nicely."""

from __future__ import annotations

import os

from work import burn, wait

from mup import EP, MS, Communication


def milliseconds(name: str, default: float) -> float:
    """Return a time from the environment."""
    return float(os.environ.get(name, default))


class A(MS):
    """What clients talk to."""

    pool_size = 5
    port = 8081

    def setup(self) -> None:
        """Read how much work a request is, once per worker."""
        self.cpu = milliseconds("MUP_A_CPU_MS", 2)

    @EP("/epA/")
    def ep_a(self, comm: Communication) -> None:
        """Return the translation of ``word``."""
        word = comm.params.get("word")
        if not word:
            comm.respond({"error": "which word?"}, status=400)
            return
        # The query is on its way while A does its own work.
        entry = comm.query("db", "qry", "tr", {"_id": word})
        burn(self.cpu)
        found = entry.get()
        if not found:
            comm.respond({"error": f"no translation of {word!r}"}, status=404)
            return
        title = comm.call("B", "/epB/", {"text": found[0]["text"]})
        comm.respond({"word": word, "translation": title.get()["text"]})


class B(MS):
    """Writes a text the way titles are written; slow, because it asks another service."""

    pool_size = 2
    port = 8082

    def setup(self) -> None:
        """Read how much work a request is, once per worker."""
        self.cpu = milliseconds("MUP_B_CPU_MS", 4)
        self.wait = milliseconds("MUP_B_WAIT_MS", 10)

    @EP("/epB/")
    def ep_b(self, comm: Communication) -> None:
        """Return ``text`` as a title."""
        burn(self.cpu)
        wait(self.wait)
        comm.respond({"text": comm.params["text"].title()})
