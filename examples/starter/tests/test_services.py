"""Tests without a running system: other services are stubs."""

from services import Greeting, Words


def test_greeting_asks_for_the_word(mup_client):
    """Greeting puts the word of Words before the name."""
    client = mup_client(Greeting)
    client.stub("Words", "/words/{language}", {"word": "Moin"})
    assert client.get("/hello/Ada?language=de").body == {"greeting": "Moin, Ada!"}
    assert client.calls[0].params == {"language": "de"}


def test_unknown_languages_are_refused(mup_client):
    """Before the endpoint is reached."""
    answer = mup_client(Words).get("/words/xx")
    assert (answer.status, answer.body["field"]) == (400, "language")
