"""The TMS example: its data, what its services do, its sizes, and teachers on real services."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from example_systems import (
    EXAMPLES,
    Steps,
    analysed,
    committed_model,
    drive,
    example,
    executed,
    fetch,
    lacking,
)

from analyzer.static import Application
from mup import MS
from mup.lqn.model import Model
from mup.lqn.statistics import Size, statistics
from mup.runtime.deployment.launcher import Deployment
from mup.testing import TestClient

sys.path.insert(0, str(EXAMPLES / "tms"))

from tms import data
from tms.ems import Ems
from tms.qms import Qms
from tms.ums import Ums

LITTLE_WORK = {
    "MUP_WORK": "wait",
    **{f"MUP_{service}_MS": "0" for service in ("CMS", "UMS", "QMS", "EMS")},
}
DONE_BY_TEACHERS: dict[str, set[Steps]] = {
    "cms/getAllUsers": {("ums/getAllUsers",)},
    "cms/getExamineeInfo": {("ums/userById",)},
    "cms/getConfigurations": {("qms/findAllConfigurations",)},
    "cms/createExam": {("ems/createExam",)},
    "cms/deleteExam": {("ems/deleteExam",)},
    "ems/createExam": {("tms.insertExam",)},
    "ems/deleteExam": {("tms.deleteExam",)},
    "ems/getQuestions": {("qms/createTest",)},
    "qms/findAllConfigurations": {("tms.allConfs",)},
    "qms/createTest": {("tms.confById", "tms.groupsOfConf", "tms.questionsOfGroups")},
    "ums/getAllUsers": {("tms.allUsers",)},
    "ums/userById": {("tms.userById",)},
}


NOT_DONE_BY_TEACHERS: dict[str, set[Steps]] = {
    "cms/createConfiguration": {("qms/createConfiguration",)},
    "cms/getCategoryInfoDtos": {("qms/findAllCategoryInfos",)},
    "cms/getQuestionsForExam": {("ems/listAllQuestionsForExam",)},
    "cms/getExams": {("ems/listAllExams",)},
    "cms/isEmailValid": {("ums/emailInUse",)},
    "ems/listAllExams": {("tms.allExams",)},
    "ems/listAllQuestionsForExam": {
        ("tms.examById",),
        ("tms.examById", "tms.confById"),
        ("tms.examById", "tms.confById", "tms.groupsOfConf", "tms.questionsOfGroup"),
    },
    "qms/createTest": {("tms.confById",)},
    "qms/findAllCategoryInfos": {("tms.allCategories",)},
    "qms/createConfiguration": {("tms.insertGroup", "tms.insertConf")},
    "ums/emailInUse": {("tms.userByEmail",)},
}
"""The other paths there are; what a loop repeats stands there once."""


def test_data_has_the_stated_size() -> None:
    """10 categories, 150 questions, 30 groups, 50 configurations, exams and users; always the same."""
    collections = data.collections()
    assert {name: len(documents) for name, documents in collections.items()} == {
        "categories": 10,
        "questions": 150,
        "confgroups": 30,
        "confs": 50,
        "exams": 50,
        "users": 50,
    }
    assert collections == data.collections()
    groups = [len(conf["groups"]) for conf in collections["confs"]]
    assert sum(groups) / 50 == pytest.approx(15, abs=1.5)
    assert min(groups) > 0


ClientOf = Callable[[type[MS]], TestClient]


@pytest.fixture
def client_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClientOf]:
    """Run the endpoints of a service in this process, with stubs for all others."""
    for name, value in LITTLE_WORK.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        yield lambda service: stack.enter_context(TestClient(service))


def test_no_user_is_null(client_of: ClientOf) -> None:
    """An unknown user is no error."""
    client = client_of(Ums)
    client.stub_query("tms", "userById", [])
    answer = client.get("/userById?id=nobody")
    assert (answer.status, answer.content) == (200, b"null")


def test_addresses_in_use(client_of: ClientOf) -> None:
    """Who has an address is told; a free one gets an id."""
    client = client_of(Ums)
    client.stub_query(
        "tms", "userByEmail", lambda _, query: [{"_id": "u"}] if query["email"] == "x@y" else []
    )
    assert client.get("/emailInUse?email=x@y").body == {"id": "u"}
    assert client.get("/emailInUse?email=z@y").body["id"] != "u"


@pytest.mark.parametrize("found", [[], [{"_id": "c", "groups": []}]], ids=["unknown", "empty"])
def test_nothing_to_ask(client_of: ClientOf, found: list[dict[str, Any]]) -> None:
    """No configuration, or one without groups, has no questions."""
    client = client_of(Qms)
    client.stub_query("tms", "confById", found)
    assert client.get("/createTest?configId=c").body == []


def test_a_test_has_so_many_questions_of_each_group(client_of: ClientOf) -> None:
    """Of each group, the first ones that belong to it."""
    client = client_of(Qms)
    groups = [group for group in data.collections()["confgroups"] if group["level"] == 1][:2]
    client.stub_query("tms", "confById", [{"_id": "c", "groups": [group["_id"] for group in groups]}])
    client.stub_query("tms", "groupsOfConf", groups)
    client.stub_query("tms", "questionsOfGroups", data.collections()["questions"])
    questions = client.get("/createTest?configId=c").body
    assert [question["_id"] for question in questions] == [
        "question-0-1",
        "question-0-4",
        "question-1-1",
        "question-1-4",
    ]


def test_new_groups_are_added(client_of: ClientOf) -> None:
    """A configuration has ids of groups, those of new ones among them."""
    client = client_of(Qms)
    client.stub_query("tms", "insertGroup", [{"inserted": 1}])
    client.stub_query("tms", "insertConf", [{"inserted": 1}])
    wish = {
        "name": "n",
        "description": "d",
        "groups": [{"_id": "old"}, {"category": "category-1", "level": 2}],
    }
    answer = client.post("/createConfiguration", wish).body
    assert answer["groups"][0] == "old"
    assert len(answer["groups"][1]) == 24


@pytest.mark.parametrize("exams", [[], [{"configId": "gone"}]], ids=["no exam", "no configuration"])
def test_exams_without_questions(client_of: ClientOf, exams: list[dict[str, Any]]) -> None:
    """What is not there asks nothing."""
    client = client_of(Ems)
    client.stub_query("tms", "examById", exams)
    client.stub_query("tms", "confById", [])
    assert client.get("/listAllQuestionsForExam?id=e").body == []


@pytest.fixture(scope="module")
def application() -> Application:
    return analysed("tms")


@pytest.fixture(scope="module")
def model(application: Application) -> Model:
    return committed_model("tms", application)


def test_analysis_finds_every_path(application: Application) -> None:
    """All that services can do is known from the source, also what no teacher makes them do."""
    assert lacking(application, DONE_BY_TEACHERS) == {}
    assert lacking(application, NOT_DONE_BY_TEACHERS) == {}


def test_the_model_has_the_sizes_of_table_3(model: Model) -> None:
    """All seven numbers of the thesis, the arcs counted right, and the full view.

    The full view has a query more than the published system, which found no groups and asked no further.
    """
    sizes = statistics(model)
    assert sizes.table3 == Size(6, 18, 36, 24, 12, 66, 12)
    assert sizes.correct_arcs == 78
    assert sizes.full == Size(6, 26, 68, 40, 12, 142, 12)


@pytest.fixture(scope="module")
def embedded_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of some cycles on the embedded database."""
    folder = tmp_path_factory.mktemp("log")
    project = example("tms", LITTLE_WORK)
    with Deployment(project, log_dir=folder) as deployment:
        drive(deployment, project, seconds=1)
        assert len(fetch(deployment, "ems", "GET", "/listAllExams").json) == 50
    return folder


@pytest.mark.slow
@pytest.mark.services
def test_teachers_do_what_is_stated(embedded_log: Path) -> None:
    """12 endpoints take one path each, with 6 calls; afterwards all their exams are gone."""
    seen = executed(embedded_log)
    assert seen.pop("ems/listAllExams")
    assert seen == DONE_BY_TEACHERS


@pytest.fixture(scope="module")
def on_mongodb(mongod: Any) -> Iterator[Deployment]:
    """The project on a real MongoDB."""
    project = example("tms", LITTLE_WORK).with_database_uri("tms", mongod.uri)
    with Deployment(project) as deployment:
        drive(deployment, project, seconds=0.5)
        yield deployment


@pytest.mark.slow
@pytest.mark.services
def test_an_exam_on_a_real_mongodb(on_mongodb: Deployment) -> None:
    """It is made, listed, asks something, and goes."""
    users = fetch(on_mongodb, "cms", "GET", "/getAllUsers").json
    assert len(users) == 50
    examinee = fetch(on_mongodb, "cms", "GET", f"/getExamineeInfo?id={users[3]['_id']}").json
    assert examinee == users[3]
    configuration = fetch(on_mongodb, "cms", "GET", "/getConfigurations").json[7]
    wish = {"examinee": "exmn", "configId": configuration["_id"], "examDate": "foo"}
    exam = fetch(on_mongodb, "cms", "POST", "/createExam", wish).json
    assert {key: exam[key] for key in wish} == wish
    assert len(fetch(on_mongodb, "cms", "GET", "/getExams").json) == 51
    test = fetch(on_mongodb, "ems", "GET", f"/getQuestions?id={configuration['_id']}").json
    assert len(test) == 2 * len(configuration["groups"])
    everything = fetch(on_mongodb, "cms", "GET", f"/getQuestionsForExam?id={exam['_id']}").json
    assert len(everything) == 5 * len(configuration["groups"])
    assert fetch(on_mongodb, "cms", "DELETE", f"/deleteExam?id={exam['_id']}").status == 204
    assert len(fetch(on_mongodb, "cms", "GET", "/getExams").json) == 50


@pytest.mark.slow
@pytest.mark.services
def test_a_new_configuration_on_a_real_mongodb(on_mongodb: Deployment) -> None:
    """Its new group is found when a test is made of it."""
    wish = {"name": "n", "description": "d", "groups": [{"category": "category-4", "level": 0, "count": 3}]}
    conf = fetch(on_mongodb, "cms", "POST", "/createConfiguration", wish).json
    test = fetch(on_mongodb, "ems", "GET", f"/getQuestions?id={conf['_id']}").json
    assert [question["category"] for question in test] == ["category-4"] * 3
    assert len(fetch(on_mongodb, "cms", "GET", "/getCategoryInfoDtos").json) == 10
    assert fetch(on_mongodb, "cms", "GET", "/isEmailValid?email=user5@email.com").json == {"id": "user-5"}
