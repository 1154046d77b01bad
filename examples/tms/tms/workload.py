"""Teachers: look up a user, choose a configuration, make an exam of it, read its questions, delete it."""

from __future__ import annotations

from mup import Client, Communication

PAUSE = 4.75
"""Seconds between two requests."""


class Teacher(Client):
    """One teacher, who tries an exam out."""

    patience = 600.0
    """Seconds to wait for an answer: a model knows no timeouts."""

    async def scenario(self, comm: Communication) -> None:
        """Try one exam."""
        await self.think(0.95)
        users = await comm.call("cms", "/getAllUsers")
        await self.think(PAUSE)
        await comm.call("cms", "/getExamineeInfo", {"id": self.random.choice(users)["_id"]})
        await self.think(PAUSE)
        configurations = await comm.call("cms", "/getConfigurations")
        await self.think(PAUSE)
        configuration = self.random.choice(configurations)["_id"]
        wish = {"examinee": "exmn", "configId": configuration, "examDate": "foo"}
        exam = await comm.call("cms", "/createExam", wish)
        await self.think(PAUSE)
        await comm.call("ems", "/getQuestions", {"id": configuration})
        await self.think(PAUSE)
        await comm.call("cms", "/deleteExam", {"id": exam["_id"]})
