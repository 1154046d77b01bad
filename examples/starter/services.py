"""Two services: Greeting greets people with the help of Words."""

from __future__ import annotations

from typing import Literal

from mup import EP, MS, Communication

Language = Literal["de", "en", "it"]

WORDS = {"de": "Hallo", "en": "Hello", "it": "Ciao"}


class Greeting(MS):
    """What visitors talk to."""

    pool_size = 4
    port = 8081

    @EP("/hello/{name}", method="GET")
    def hello(self, comm: Communication, name: str, language: Language = "en") -> None:
        """Greet a visitor."""
        word = comm.call("Words", "/words/{language}", {"language": language})
        comm.respond({"greeting": f"{word.get()['word']}, {name}!"})


class Words(MS):
    """Knows how people greet each other."""

    pool_size = 2

    @EP("/words/{language}", method="GET")
    def word(self, comm: Communication, language: Language) -> None:
        """Return the word for a language."""
        comm.respond({"word": WORDS[language]})
