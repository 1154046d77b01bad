"""Categories, groups of questions, and configurations of exams."""

from __future__ import annotations

import secrets

import msgspec

from mup import EP, MS, Communication
from tms.documents import respond_pretty
from tms.questions import groups_of, questions_of_groups
from tms.work import compute, milliseconds


class Group(msgspec.Struct):
    """A group of questions; with an id, one that is there already."""

    id: str = msgspec.field(default="", name="_id")
    category: str = ""
    level: int = 0
    language: str = "lang"
    count: int = 2


class Configuration(msgspec.Struct):
    """What an exam consists of."""

    name: str
    description: str
    groups: list[Group]


class Qms(MS):
    """Questions."""

    pool_size = 1
    port = 9102

    def setup(self) -> None:
        """Read how much work a request is, once per worker."""
        self.work_ms = milliseconds("MUP_QMS_MS", 40)

    @EP("/findAllConfigurations", name="FindAllConfigurations", method="GET")
    def find_all_configurations(self, comm: Communication) -> None:
        """Return all configurations of exams."""
        configurations = comm.query("tms", "allConfs", "confs", {}).get()
        compute(self.work_ms)
        respond_pretty(comm, configurations)

    @EP("/createTest", name="CreateTest", method="GET")
    def create_test(self, comm: Communication, configId: str) -> None:  # noqa: N803 - as callers call it
        """Return the questions of an exam with this configuration."""
        configurations = comm.query("tms", "confById", "confs", {"_id": configId}).get()
        if not configurations or not configurations[0]["groups"]:
            comm.respond([])
            return
        groups = groups_of(comm, configurations[0])
        questions = questions_of_groups(comm, groups)
        compute(self.work_ms)
        respond_pretty(comm, questions)

    @EP("/findAllCategoryInfos", name="FindAllCategoryInfos", method="GET")
    def find_all_category_infos(self, comm: Communication) -> None:
        """Return all categories."""
        categories = comm.query("tms", "allCategories", "categories", {}).get()
        compute(self.work_ms)
        respond_pretty(comm, categories)

    @EP("/createConfiguration", name="CreateConfiguration", method="POST")
    def create_configuration(self, comm: Communication, configuration: Configuration) -> None:
        """Add a configuration, and those of its groups that are new."""
        compute(self.work_ms)
        groups = [group.id or add_group(comm, group) for group in configuration.groups]
        document = {
            "_id": secrets.token_hex(12),
            "name": configuration.name,
            "description": configuration.description,
            "groups": groups,
        }
        comm.query("tms", "insertConf", "confs", {"$command": "insert", "documents": [document]}).get()
        comm.respond(document)


def add_group(comm: Communication, group: Group) -> str:
    """Add a group; return its id."""
    document = {**msgspec.to_builtins(group), "_id": secrets.token_hex(12)}
    comm.query("tms", "insertGroup", "confgroups", {"$command": "insert", "documents": [document]}).get()
    return str(document["_id"])
