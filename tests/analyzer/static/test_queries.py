"""Queries the runtime refuses are found in the source, by the runtime's rules; what is not known is no finding."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from source_outline import analyse_files, codes

from mup.cli.main import main
from mup.databases.command import NOT_KNOWN, check_known, parse_command
from mup.errors import QueryError

HEAD = """\
from mup import EP, MS, Communication
import collections
WRONG = {'$command': 'find', 'fields': []}
FIND={"$command":"find","filter":{}}
STAGES=[{"$match":{}}]
BASE={"$command":"update","filter":{}}
LATER={"$command":"update","filter":{}}
LATER["update"]={"$set":{}}
LATER2={"$command":"update","filter":{}}
def init():
    LATER2.update(update={"$set":{}})
init()
TABLE={"a":{"$command":"count"},"b":{"x":1}}
ARGS=("d","q","c",{})
POOL=[]
D=-1
def add(docs):
    docs.append({})
def fill(q):
    q["update"]={"$set":{}}
def other(q):
    def deep(z):
        def deeper(y):
            def deepest(x):
                def more(w): w.setdefault("update",{})["$set"]={}
                more(x)
            deepest(y)
        deeper(z)
    deep(q)
def feed():
    POOL.append({})
class Doc(dict): pass
class Ext(collections.UserList):
    def add(self): self.data.append({})
class Holder:
    def __init__(self, d): self.d=d
    def add(self): self.d.append({})
class H2:
    def __init__(self): self.q={"$command":"update","filter":{}}
class S(MS):
    Q={"$command":"update","filter":{}}
    Q["update"]={"$set":{}}
    def setup(self):
        self.q={"$command":"update","filter":{}}
        self.q["update"]={"$set":{}}
        self.q2={"$command":"update","filter":{}}
        self.fix(self.q2)
        self.helper=H2()
        feed()
    def fix(self,q): q["update"]={"$set":{}}
    @EP("/x/")
    def x(self, comm: Communication):
"""


def source(body: str) -> str:
    """Return a service whose endpoint does this."""
    return HEAD + indent(f"{body}\ncomm.respond(1)\n", " " * 8)


WRONG = [
    pytest.param('comm.query("d", "q", "c", [{"_id": 1}, {"$set": {}}])', "must be a JSON object", id="list"),
    pytest.param('comm.query("d", "q", "c", \'{"_id": \')', "not JSON", id="text-that-is-no-json"),
    pytest.param('comm.query("d", "q", "c", {"$command": "updat"})', "did you mean 'update'", id="command"),
    pytest.param(
        'comm.query("d", "q", "c", {"$command": "update", "filter": comm.params})',
        "needs the field 'update'",
        id="missing-field",
    ),
    pytest.param(
        'comm.query("d", "q", "c", {"$command": "find", "filtr": comm.params})',
        "did you mean 'filter'",
        id="unknown-field",
    ),
    pytest.param(
        'comm.query("d", "q", "c", {"$command": "find", "filter": comm.params, "limit": "3"})',
        "whole number",
        id="type-of-a-field",
    ),
    pytest.param(
        'comm.query("d", "q", "c", {"$command": "update", "filter": {}, "update": {"a": comm.params}})',
        "operators",
        id="part-of-a-field",
    ),
    pytest.param(
        'comm.query("d", "q", "c", {"$command": "insert", "documents": []})',
        "at least one",
        id="nothing-to-insert",
    ),
    pytest.param('comm.query("d", "q", "c", {"$command": "find", "sort": {"a": 2}})', "1 or -1", id="order"),
    pytest.param(
        'q = {"$command": "aggregate"}\nq["pipelin"] = comm.params["x"]\ncomm.query("d", "q", "c", q)',
        "needs the field 'pipeline'",
        id="built-step-by-step",
    ),
    pytest.param('comm.query("d", "q", "c", WRONG)', "no field 'fields'", id="module-constant"),
    pytest.param(
        'comm.query("d", "q", "c", qry_txt={**BASE})', "needs the field 'update'", id="keyword-and-spread"
    ),
    pytest.param(
        'for one in comm.params:\n    comm.query("d", "q", "c", [one]).get()',
        "must be a JSON object",
        id="in-a-loop",
    ),
    pytest.param(
        'q = [1] if comm.params else {"$command": "x"}\ncomm.query("d", "q", "c", q)',
        "unknown database command",
        id="every-alternative",
    ),
    pytest.param('comm.query("d", "q", "c")', "no qry_txt", id="no-text"),
]


@pytest.mark.parametrize(("body", "says"), WRONG)
def test_a_query_of_the_wrong_form_is_found(tmp_path: Path, body: str, says: str) -> None:
    """One finding, at the query, with the runtime's words."""
    text = source(body)
    application = analyse_files(tmp_path, app=text)
    (found,) = [finding for finding in application.diagnostics if finding.code != "MUP022"]
    assert found.code == "MUP014"
    assert says in f"{found.message} {found.hint}"
    assert "comm.query" in text.splitlines()[found.line - 1]


def test_the_caret_stands_below_the_text_of_the_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """``mup paths`` shows the argument, says what is wrong with it, and what a right one looks like."""
    (tmp_path / "app.py").write_text(
        source('comm.query("d", "q", "c", {"$command": "update", "filter": {}}).get()')
    )
    with pytest.raises(SystemExit) as ended:
        main(["paths", str(tmp_path)])
    assert ended.value.code == 1
    lines = capsys.readouterr().err.splitlines()
    at = next(number for number, line in enumerate(lines) if "MUP014" in line)
    assert "update needs the field 'update'" in lines[at]
    marked = lines[at + 1][lines[at + 2].index("^") : lines[at + 2].rindex("^") + 1]
    assert marked == '{"$command": "update", "filter": {}}'
    assert lines[at + 3].strip() == 'write {"$command": "update", "filter": ..., "update": ...}'


RIGHT = {
    "item": 'q={"$command":"update","filter":{}}\nq["update"]={"$set":{}}\ncomm.query("d","q","c",q)',
    "alias": 'q={"$command":"update","filter":{}}\na=q\na["update"]={"$set":{}}\ncomm.query("d","q","c",q)',
    "update-with-the-unknown": 'q={"$command":"update","filter":{}}\nq.update(comm.params)\ncomm.query("d","q","c",q)',
    "update-by-keyword": 'q={"$command":"update","filter":{}}\nq.update(update={"$set":{}})\ncomm.query("d","q","c",q)',
    "operator": 'q={"$command":"update","filter":{}}\nq |= comm.params\ncomm.query("d","q","c",q)',
    "setdefault": 'q={"$command":"update","filter":{}}\nq.setdefault("update",{"$set":{}})\ncomm.query("d","q","c",q)',
    "helper": 'q={"$command":"update","filter":{}}\nfill(q)\ncomm.query("d","q","c",q)',
    "deep-helper": 'q={"$command":"update","filter":{}}\nother(q)\ncomm.query("d","q","c",q)',
    "loop": 'q={"$command":"update","filter":{}}\nfor k in comm.params:\n    q[k]=comm.params[k]\ncomm.query("d","q","c",q)',
    "loop2": 'q={"$command":"update","filter":{}}\nfor k in comm.params:\n    q["update"]={"$set":{}}\n    comm.query("d","q","c",q).get()',
    "loop3": 'docs=[]\nfor k in comm.params:\n    docs.append({"k":k})\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "loop4": 'docs=[]\nfor k in comm.params:\n    docs += [{"k":k}]\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "loop5": 'docs=[]\nfor k in comm.params:\n    add(docs)\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "while": 'docs=[]\nwhile comm.params:\n    docs.append({"k":1})\n    if comm.params.pop("x"): break\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "comp": 'comm.query("d","q","c",{"$command":"insert","documents":[{"k":k} for k in comm.params]})',
    "list": 'comm.query("d","q","c",{"$command":"insert","documents":list(comm.params)})',
    "starred": 'comm.query("d","q","c",{"$command":"aggregate","pipeline":[*STAGES, {"$limit":3}]})',
    "const": 'comm.query("d","q","c",FIND)',
    "constmut": 'comm.query("d","q","c",LATER)',
    "constmut2": 'comm.query("d","q","c",LATER2)',
    "table": 'comm.query("d","q","c",TABLE[comm.params["x"]])',
    "class-body": 'comm.query("d","q","c",self.Q)',
    "setup": 'comm.query("d","q","c",self.q)',
    "setup2": 'comm.query("d","q","c",self.q2)',
    "nested": 'q={"$command":"update","filter":{}}\ndef f():\n    q["update"]={"$set":{}}\nf()\ncomm.query("d","q","c",q)',
    "copy": 'q=dict(FIND, limit=3)\ncomm.query("d","q","c",q)',
    "copy2": 'q=FIND.copy()\nq["limit"]=3\ncomm.query("d","q","c",q)',
    "spread": 'comm.query("d","q","c",{**BASE,"update":{"$set":{}}})',
    "json": 'import json\ncomm.query("d","q","c",json.dumps({"_id":1}))',
    "fstr": 'comm.query("d","q","c",f\'{{"_id": "{comm.params["x"]}"}}\')',
    "branch": 'if comm.params:\n    q={"a":1}\nelse:\n    q={"$command":"count"}\ncomm.query("d","q","c",q)',
    "branch2": 'q={"$command":"update","filter":{}}\nif comm.params:\n    q["update"]={"$set":{}}\nelse:\n    q["update"]=[{"$set":{}}]\ncomm.query("d","q","c",q)',
    "none": 'q=None\nif comm.params:\n    q={"a":1}\nif q is not None:\n    comm.query("d","q","c",q)',
    "del": 'q={"$command":"find","x":1}\ndel q["x"]\ncomm.query("d","q","c",q)',
    "pop": 'q={"$command":"find","x":1}\nq.pop("x")\ncomm.query("d","q","c",q)',
    "sort": 'comm.query("d","q","c",{"$command":"find","sort":[("a",-1)]})',
    "sort2": 'comm.query("d","q","c",{"$command":"find","sort":{"a":D}})',
    "sort3": 'comm.query("d","q","c",{"$command":"find","sort":sorted(comm.params)})',
    "oid": 'from bson import ObjectId\ncomm.query("d","q","c",{"_id":ObjectId()})',
    "kw": 'comm.query(db_name="d",qry_name="q",coll_name="c",qry_txt={})',
    "star": "comm.query(*ARGS)",
    "obj": 'comm.query("d","q","c",Doc())',
    "bytes": 'comm.query("d","q","c",b\'{"a":1}\')',
    "numcompare": 'comm.query("d","q","c",{"$command":"find","limit":int(comm.params["n"])})',
    "max": 'comm.query("d","q","c",{"$command":"find","limit":max(1, 3)})',
    "zip": 'q=dict(zip(["$command"],["find"]))\ncomm.query("d","q","c",q)',
    "fromkeys": 'q=dict.fromkeys(["a"])\ncomm.query("d","q","c",q)',
    "insertlist": 'docs=[]\ndocs.extend(comm.params)\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "insertlist2": 'docs=[]\ndocs.insert(0, {})\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "slice": 'docs=[]\ndocs[0:0]=[{"a":1}]\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "globalm": 'comm.query("d","q","c",{"$command":"insert","documents":POOL})',
    "try": 'docs=[]\ntry:\n    docs.append({})\nfinally:\n    pass\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "match": 'match comm.params:\n    case {"a": x}:\n        q={"a":x}\n    case _:\n        q={}\ncomm.query("d","q","c",q)',
    "lambda": 'mk=lambda **k: {"$command":"update","filter":{}, **k}\ncomm.query("d","q","c",mk(update={"$set":{}}))',
    "default-of-a-nested-function": 'def mk(q={"$command":"update","filter":{}}):\n    q["update"]={"$set":{}}\n    return q\ncomm.query("d","q","c",mk())',
    "setitem": 'q={"$command":"update","filter":{}}\nq.__setitem__("update",{"$set":{}})\ncomm.query("d","q","c",q)',
    "operator-module": 'import operator\nq={"$command":"update","filter":{}}\noperator.setitem(q,"update",{"$set":{}})\ncomm.query("d","q","c",q)',
    "listmap": 'q={"$command":"insert","documents":list(map(dict, comm.params))}\ncomm.query("d","q","c",q)',
    "nestedalias": 'u={}\nq={"$command":"update","filter":{},"update":u}\nu["$set"]={}\ncomm.query("d","q","c",q)',
    "nestedalias2": 'u={}\nq={"$command":"update","filter":{},"update":u}\nfor k in comm.params:\n    u["$set"]={k:1}\ncomm.query("d","q","c",q)',
    "nestedhelper": 'u={}\nq={"$command":"update","filter":{},"update":u}\nother(q)\ncomm.query("d","q","c",q)',
    "attr": 'self.helper.q["update"]={"$set":{}}\ncomm.query("d","q","c",self.helper.q)',
    "gather": 'docs=[]\n[docs.append({"k":k}) for k in comm.params]\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "anyapp": 'docs=[]\nany(docs.append({"k":k}) for k in comm.params)\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "stored": 'docs=[]\nh=Holder(docs)\nh.add()\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "stored2": 'docs=[]\nh=Ext(docs)\nh.add()\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "while2": 'docs=[]\nn=0\nwhile n<len(comm.params):\n    docs.append({})\n    n+=1\ncomm.query("d","q","c",{"$command":"insert","documents":docs})',
    "cond": 'docs=[]\nif comm.params:\n    docs.append({})\nif docs:\n    comm.query("d","q","c",{"$command":"insert","documents":docs})',
    "cond2": 'docs=[{}] if comm.params else []\nif docs:\n    comm.query("d","q","c",{"$command":"insert","documents":docs})',
    "cond3": 'docs=[]\nif docs:\n    comm.query("d","q","c",{"$command":"insert","documents":docs})',
}
"""Queries whose form is right, or not known, for all the source says."""


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in RIGHT.items()])
def test_what_may_be_right_is_no_finding(tmp_path: Path, body: str) -> None:
    """No false alarm: a text that something may have changed, or that is made by others, is not known."""
    assert [c for c in codes(analyse_files(tmp_path, app=source(body))) if c != "MUP022"] == []


MALFORMED = [
    [{}],
    7,
    "x",
    {"$command": "findd"},
    {"$command": ["find"]},
    {"$command": "find", "filtre": {}},
    {"$command": "find", 1: 2},
    {"$command": "aggregate"},
    {"$command": "aggregate", "pipeline": {}},
    {"$command": "update", "filter": {}, "update": {}},
    {"$command": "find", "sort": []},
    {"$command": "delete", "filter": None},
]


@pytest.mark.parametrize("text", MALFORMED)
def test_both_have_one_rule(text: object) -> None:
    """What is wholly known is refused with the same words before and while it is executed."""
    with pytest.raises(QueryError) as before:
        check_known(text)
    with pytest.raises(QueryError) as then:
        parse_command(text)  # type: ignore[arg-type]
    assert str(before.value) == str(then.value)


@pytest.mark.parametrize(
    "text",
    [
        NOT_KNOWN,
        {"$command": NOT_KNOWN, "x": 1},
        {"$command": "update", "filter": NOT_KNOWN, "update": NOT_KNOWN, "many": NOT_KNOWN},
        {"$command": "update", "filter": {}, "update": [NOT_KNOWN, {"$set": NOT_KNOWN}]},
        {"$command": "insert", "documents": [NOT_KNOWN]},
        {"$command": "find", "sort": [["a", NOT_KNOWN], NOT_KNOWN, (NOT_KNOWN, -1)], "limit": NOT_KNOWN},
    ],
)
def test_unknown_parts_are_unknown(text: object) -> None:
    """Every part may be what makes the query right."""
    check_known(text)
