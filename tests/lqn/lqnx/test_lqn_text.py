"""LQNS's text format is read with the words of its grammar and the values of variables."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from lqn_text_samples import SHOP, one_server, read_text
from lqnx_samples import read, there_and_back

from mup.cli.main import main
from mup.errors import ModelError, UsageError
from mup.lqn import Constant, Exponential, Forward, Geometric, Pareto, Precedence, Processor, Uniform
from mup.lqn.comparison import compare
from mup.lqn.files import format_of_input, read_model, write_model

SHOP_AS_LQNX = """<lqn-model name="t">
<processor name="customers" scheduling="inf">
 <task name="customer" scheduling="ref" multiplicity="3" think-time="2"><entry name="buy"><entry-phase-activities>
  <activity name="buy_1" phase="1" host-demand-mean="0.5"><synch-call dest="serve" calls-mean="1"/>
   <synch-call dest="search" calls-mean="2.5"/></activity></entry-phase-activities></entry></task>
</processor>
<processor name="cpu" scheduling="ps" quantum="0.1" multiplicity="2" speed-factor="2.5">
 <task name="server" scheduling="hol" priority="4" multiplicity="2">
  <entry name="serve"><entry-phase-activities>
   <activity name="serve_1" phase="1" host-demand-mean="0.1" host-demand-cvsq="0.5" call-order="DETERMINISTIC">
    <synch-call dest="read" calls-mean="2"/></activity>
   <activity name="serve_2" phase="2" host-demand-mean="0.2"><asynch-call dest="read" calls-mean="1.5"/></activity>
  </entry-phase-activities></entry>
  <entry name="search"/>
  <task-activities>
   <activity name="look" host-demand-mean="0.1" bound-to-entry="search"/>
   <activity name="left" host-demand-mean="0.2"/><activity name="right" host-demand-mean="0.3"/>
   <activity name="both" host-demand-mean="0" think-time="0.5"><synch-call dest="read" calls-mean="1"/></activity>
   <precedence><pre><activity name="look"/></pre>
    <post-AND><activity name="left"/><activity name="right"/></post-AND></precedence>
   <precedence><pre-AND><activity name="left"/><activity name="right"/></pre-AND>
    <post><activity name="both"/></post></precedence>
   <reply-entry name="search"><reply-activity name="both"/></reply-entry>
  </task-activities></task>
</processor>
<processor name="disk" scheduling="fcfs"><task name="store" scheduling="fcfs"><entry name="read">
 <entry-phase-activities><activity name="read_1" phase="1" host-demand-mean="0.01"/></entry-phase-activities>
</entry></task></processor>
</lqn-model>"""


def test_a_text_is_the_model_its_lqnx_twin_is() -> None:
    """The same model, written in both formats by hand, is one model; nothing but the lines differs."""
    text, twin = read_text(SHOP), read(SHOP_AS_LQNX)
    assert compare(text, twin) == []
    assert replace(text, provenance={}) == replace(twin, provenance={})
    assert there_and_back(text) == replace(text, provenance={})


@pytest.mark.parametrize(
    ("flag", "processor"),
    [
        ("f", Processor(name="ps", discipline="fcfs")),
        ("f m 4", Processor(name="ps", discipline="fcfs", cores=4)),
        ("i", Processor(name="ps", discipline="infinite", cores=math.inf)),
        ("f i", Processor(name="ps", discipline="infinite", cores=math.inf)),
        ("h", Processor(name="ps", discipline="hol")),
        ("p R 2", Processor(name="ps", discipline="pp", speed=2.0)),
        ("s 0.5", Processor(name="ps", discipline="ps")),
        ("s", Processor(name="ps", discipline="ps")),
        ("f %u $u", Processor(name="ps", discipline="fcfs")),
        ("f %u 95 $u $v", Processor(name="ps", discipline="fcfs")),
    ],
)
def test_processors(flag: str, processor: Processor) -> None:
    """The letter of a processor is its discipline, letters behind it its cores and speed; results are no part."""
    assert read_text(one_server(processor=flag)).processor("ps") == processor


@pytest.mark.parametrize(
    ("letter", "options", "threads", "admission", "priority"),
    [
        ("n", "", 1, "fifo", 0),
        ("f", "m 7", 7, "fifo", 0),
        ("h", "3 m 2", 2, "hol", 3),
        ("p", "m 2 3", 2, "hol", 3),
        ("i", "", math.inf, "fifo", 0),
        ("n", "i %f $x %u1 $y", math.inf, "fifo", 0),
    ],
)
def test_tasks(letter: str, options: str, threads: float, admission: str, priority: int) -> None:
    """The letter of a task and what is behind its processor say threads, admission and priority."""
    task = read_text(one_server(task=letter, server=options)).task("s")
    assert (task.threads, task.admission, task.priority) == (threads, admission, priority)


def test_reference_tasks() -> None:
    """The demands of bursty and uniform reference tasks have their distributions; z is think time."""
    text = (
        one_server()
        .replace("t c r go -1 pc m 3", "t c {} go -1 pc m 3 z 4")
        .replace("s go 1 -1", "s go 1 -1\nc go 2 -1")
    )
    demands = {
        letter: read_text(text.replace("{}", letter)).task("c").entries[0].activities[0].demand
        for letter in "rbu"
    }
    assert demands["u"] == Uniform(0.0, 2.0)
    assert isinstance(demands["b"], Pareto)
    assert demands["r"] is not None
    assert demands["r"].scv == pytest.approx(2)
    assert read_text(text.replace("{}", "r")).task("c").think == Exponential(4.0)


def test_entries() -> None:
    """Arrivals, priority, forwarding, think times, phases without work and limits of times."""
    text = one_server(
        "s e 0 1 2 -1\nZ e 0 0 3 -1\na e 0.25\np e 2\nF e far 0.5 -1 %w $x\nM e 5 5 5 -1\nH e 2 0 : 5 9\ns far 1 -1"
    ).replace("t s n e", "t t n far -1 pc\nt s n e")
    model = read_text(text)
    entry = model.task("s").entry("e")
    assert (entry.arrivals, entry.priority) == (Exponential(4.0), 2)
    assert entry.forwards == (Forward(task="t", entry="far", probability=0.5),)
    assert [(a.name, a.demand, a.delay) for a in entry.activities] == [
        ("e_ph1", Constant(0.0), Constant(0.0)),
        ("e_2", Exponential(1.0), Constant(0.0)),
        ("e_3", Exponential(2.0), Exponential(3.0)),
    ]
    notes = " ".join(model.provenance["lqnx"]["notes"])
    assert "histograms" in notes
    assert "max-service-time" in notes


def test_an_entry_without_work_is_served_in_no_time() -> None:
    """Phases of 0 only are one phase of 0."""
    (activity,) = read_text(one_server("s e 0 0 -1")).task("s").entry("e").activities
    assert activity.demand == Constant(0.0)


def test_reader_writer_locks() -> None:
    """A task ``W`` has entries that lock and unlock, for reading and for writing."""
    text = one_server("s e 1 -1\nR e\nU f\ns f 0 -1\nW g\ns g 0 -1\nX h\ns h 0 -1", task="W", server="m 3")
    task = read_text(text.replace("W e -1", "W e f g h -1")).task("s")
    tokens = {"e": "read-lock", "f": "read-unlock", "g": "write-lock", "h": "write-unlock"}
    assert {e.name: e.token for e in task.entries} == tokens
    assert (task.threads, task.admission) == (3, "fifo")


def test_semaphores() -> None:
    """P acquires the token, V releases it; T 0 begins without tokens, which no model can."""
    text = one_server("s e 1 -1\nP e\nV f\ns f 0 -1", task="S", server="m 2").replace("S e -1", "S e f -1")
    assert {e.name: e.token for e in read_text(text).task("s").entries} == {"e": "acquire", "f": "release"}
    with pytest.raises(ModelError, match="begins with fewer tokens"):
        read_text(text.replace("ps m 2", "ps m 2 T 0"))


def test_precedences() -> None:
    """Choices with odds, merges, loops with counts and ends, quorums; numbers are names, too."""
    text = one_server(
        "A e a",
        more="A s s a 1 s b 1 s c 1 s d 1 s x 1 s y 1 s z 1 s l 1 s 7 1 s n 1 : a -> (0.25)b + (0.75)c; b + c -> d;"
        "d -> x & y & z; x & y & z (2) -> l; l -> 1.5*7, n; n[e] -1",
    )
    assert read_text(text).task("s").entry("e").precedences == (
        Precedence(pre=("a",), post=("b", "c"), fork="or", probabilities=(0.25, 0.75)),
        Precedence(pre=("b", "c"), post=("d",), join="or"),
        Precedence(pre=("d",), post=("x", "y", "z"), fork="and"),
        Precedence(pre=("x", "y", "z"), post=("l",), join="and", quorum=2),
        Precedence(pre=("l",), post=("7", "n"), fork="loop", counts=(Geometric(1.5),)),
    )


def test_replication_and_fans() -> None:
    """Replication (r) and fans (I, O: who calls how many) are written out as those of lqnx."""
    text = one_server(processor="f r 2", server="r 2").replace("-1\nE 0", "O c s 2\nI c s 1\n-1\nE 0")
    model = read_text(text)
    assert [t.name for t in model.tasks] == ["c_1", "s_1", "s_2"]
    assert {c.task for c in model.task("c_1").entries[0].activities[0].calls} == {"s_1", "s_2"}


def test_fans_of_entries_are_those_of_their_tasks() -> None:
    """Old files say i and o between entries; the model is that of I and O between the tasks."""
    text = one_server(processor="f r 2", server="r 2")
    new = text.replace("-1\nE 0", "O c s 2\nI c s 1\n-1\nE 0")
    old = text.replace("s go 1 -1", "s go 1 -1\no go e 2 -1\ni go e 1 -1")
    assert read_text(old).tasks == read_text(new).tasks
    with pytest.raises(ModelError, match="line 12: a second fan-out of 'c' and 's' is 1"):
        read_text(old.replace("i go e 1 -1", "o go e 1 -1"))
    with pytest.raises(ModelError, match="line 12: no entry is named 'x'"):
        read_text(old.replace("i go e", "i go x"))


def test_variables_of_one_value_are_put_in() -> None:
    """Numbers, variables, expressions in braces, a list of one; ** binds to the right, brackets first."""
    program = "$solver = lqns\n$n = 3\n$list = [2]\n$t = ($n - 1) * 2 ** 3 ** 0 / 4 + 7 % 4\n"
    text = program + one_server("s e $t {$t / $list} -1", server="m $n")
    task = read_text(text).task("s")
    assert task.threads == 3
    assert [a.demand for a in task.entry("e").activities] == [Exponential(4.0), Exponential(2.0)]


def test_what_a_solver_prints_is_skipped() -> None:
    """A report section says nothing about the model."""
    report = "R 2\n $x = $u * 2\n ($r - $q)\n-1\n"
    assert read_text(one_server(more=report)).tasks == read_text(one_server()).tasks


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("$n = [1, 2]\n" + one_server(), 1, "'$n' takes several values: the file is many models"),
        ("$n = [1:2,0.1]\n" + one_server(), 1, "'$n' takes several values"),
        ("$n = array_create(1, 2)\n" + one_server(), 1, "array_create makes several values"),
        ("$n, $m = $m + 1\n" + one_server(), 1, "'$n' takes several values"),
        ("$n = max(1, 2)\n" + one_server(), 1, "the function max is not computed"),
        ("$n = 1 < 2 ? 3 : 4\n" + one_server(), 1, "'$n' depends on a condition"),
        ('$n = "text"\n' + one_server(), 1, "'$n' is a text"),
        ("$n = 1 / 0\n" + one_server(), 1, "1 / 0 has no value"),
        ("$n = 10 ** 999\n" + one_server(), 1, "10 ** 999 has no value"),
        ("$n = " + "(" * 60 + "1" + ")" * 60 + "\n" + one_server(), 1, "brackets inside each other"),
        (one_server("s e $t -1"), 12, "the variable $t has no value"),
        (one_server("s e -2 -1"), 12, "expected a number, got '-'"),
        (one_server("s e -1"), 12, "expected a number, got '-1'"),
        (one_server("s e 1 2 3 4 -1"), 12, "expected '-1' behind the 3 phases, got '4'"),
        (one_server("s e 1"), 14, "behind the entries, got the end of the file"),
        (one_server(more="-1"), 14, "expected a section 'A', 'R' or 'C', or the end of the file, got '-1'"),
        (one_server("s x 1 -1\ns e 1 -1"), 12, "no entry is named 'x'; known: e, go"),
        (one_server("f e 2 -1"), 12, "calls are 0 (stochastic) or 1 (deterministic), got '2'"),
        (one_server("H e 4 0 : 5"), 12, "there are phases 1 to 3, got '4'"),
        (one_server("y e gone 1 -1"), 12, "no entry is named 'gone'"),
        (one_server(processor="x"), 3, "the scheduling of a processor, one of f i r h p c s"),
        (one_server(processor="c 0.1"), 3, "scheduling 'cfs'"),
        (one_server(processor="r"), 3, "scheduling 'rand'"),
        (one_server(task="P"), 7, "polling"),
        (one_server(server="q 5"), 7, "a bounded queue"),
        (one_server().replace("-1 ps", "-1 sp"), 7, "no processor is named 'sp'; known: pc, ps"),
        (one_server().replace("n e -1", "n -1"), 7, "task 's' has no entry"),
        (one_server().replace("n e -1", "n e go -1"), 7, "a second entry is named 'go'"),
        (one_server().replace("t s n", "t c n"), 7, "a second task is named 'c'"),
        (one_server().replace("p ps", "p pc"), 3, "a second processor is named 'pc'"),
        (one_server().replace("p ps", "d pc ps 1\np ps"), 3, "delays between processors are not supported"),
        (one_server("A e a"), 12, "no activity is named 'a'"),
        (one_server("A e a", more="A s s a 1 : a -> b -1"), 14, "no activity is named 'b'"),
        (one_server("A e a", more="A x s a 1 -1"), 14, "no task is named 'x'"),
        (one_server("A e a", more="A s s a 1 : a -> 1 * a, a, a -1"), 14, "a loop has one activity behind it"),
        (one_server("A e a", more="A s s a 1 : a b -1"), 14, "expected '-1' behind the activities"),
        (one_server("A e a", more="A s s a"), 14, "expected a number, got the end of the file"),
        (one_server(more="R 0 $x"), 14, "expected '-1' behind the results"),
        (one_server(more="C 1 $x = $u -1"), 14, "solved again until its variables converge"),
        ("G no comment -1", 1, "expected a comment in quotation marks behind 'G', got 'no'"),
        ('G "never closed\n\n', 1, "the comment that begins here never ends"),
        ("P 1\nU", 2, "expected one of p d, or '-1' behind the processors, got 'U'"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_their_line(text: str, line: int, expected: str) -> None:
    """The message has the file, the line, what is wrong, and that the file was taken for a text model."""
    with pytest.raises(ModelError) as caught:
        read_text(text)
    message = str(caught.value)
    assert expected in message
    assert message.startswith("t.lqn: ")
    assert f"line {line}: " in message


def test_names_that_stand_for_nothing_are_listed_at_once() -> None:
    """Three unknown names are three problems of one message."""
    with pytest.raises(ModelError) as caught:
        read_text(one_server("s x 1 -1\ns y 1 -1\ns z 1 -1"))
    assert "3 problems" in str(caught.value)


def test_a_message_names_the_format() -> None:
    """A mistake in the grammar says for what the file was taken."""
    with pytest.raises(ModelError, match="the file is read as an LQNS text model"):
        read_text("P 1 q")


@pytest.mark.parametrize("name", ["m.lqn", "m.in", "m.xlqn", "m.json", "m.lqnx", "m"])
def test_content_says_the_format_not_the_name(tmp_path: Path, name: str) -> None:
    """A text, lqnx and a native model are each read as what they are, under any name."""
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf# comment\n\n  # another: {\n" + SHOP.encode())
    assert format_of_input(path) == "lqn"
    assert len(read_model(path).tasks) == 3
    path.write_text("$n = 1\n" + one_server(server="m $n"))
    assert format_of_input(path) == "lqn"
    path.write_text("\n" + SHOP_AS_LQNX)
    assert format_of_input(path) == "lqnx"
    assert len(read_model(path).tasks) == 3
    native = tmp_path / "native.json"
    write_model(read_text(SHOP), native)
    path.write_bytes(native.read_bytes())
    assert format_of_input(path) == "json"
    assert len(read_model(path).tasks) == 3


def test_a_text_of_another_kind_is_not_taken_for_json(tmp_path: Path) -> None:
    """What begins like no model is read as its suffix says, and the message says so."""
    path = tmp_path / "m.lqn"
    path.write_text("hello")
    with pytest.raises(ModelError, match=r"line 1: expected 'P' before the processors, got 'hello'"):
        read_model(path)


def test_texts_are_not_written(tmp_path: Path) -> None:
    """The text format is for reading."""
    with pytest.raises(UsageError, match="the text format of LQNS is read, but not written"):
        write_model(read_text(SHOP), tmp_path / "m.lqn")


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "{}", "--horizon", "50", "--no-saturation"],
        ["simulate", "{}", "--engine", "analytic"],
        ["whatif", "{}", "--pool", "server=3", "--precision", "0.2", "--no-difference", "--no-saturation", "--no-interval"],
        ["stats", "{}"],
        ["graph", "{}", "-o", "{}.svg"],
        ["convert", "{}", "{}.json"],
        ["convert", "{}", "{}.lqnx"],
        ["diff", "{}", "{}"],
    ],
    ids=lambda a: a[0],
)  # fmt: skip
def test_commands_read_texts(
    tmp_path: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command that reads a model reads a text model."""
    path = tmp_path / "shop.lqn"
    path.write_text(SHOP)
    with pytest.raises(SystemExit) as ended:
        main([a.replace("{}", str(path)) for a in arguments])
    assert ended.value.code == 0, capsys.readouterr().err


def test_convert_repeats_the_notes_of_a_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was left out of a text model is listed, as for lqnx."""
    path = tmp_path / "shop.lqn"
    path.write_text(SHOP)
    with pytest.raises(SystemExit):
        main(["convert", str(path), str(tmp_path / "shop.json")])
    assert "note: quanta were dropped" in capsys.readouterr().out
