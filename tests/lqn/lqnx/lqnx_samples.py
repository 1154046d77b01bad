"""Small lqnx files for tests, and reading and writing them in memory."""

from __future__ import annotations

from dataclasses import replace

from mup.lqn import Model
from mup.lqn.lqnx import model_to_lqnx
from mup.lqn.lqnx.elements import parse_xml
from mup.lqn.lqnx.importer import model_from_element

CLIENT = """
<processor name="pc" scheduling="inf"><task name="c" scheduling="ref" multiplicity="3" think-time="2">
 <entry name="ce" type="PH1PH2"><entry-phase-activities>
  <activity name="ce_1" phase="1" host-demand-mean="0.5"><synch-call dest="e" calls-mean="2"/></activity>
 </entry-phase-activities></entry></task></processor>"""


def read(text: str) -> Model:
    """Read the text of an lqnx file called t.lqnx."""
    return model_from_element(parse_xml(text.encode(), "t.lqnx"), "t.lqnx")


def file(*processors: str) -> str:
    return f'<?xml version="1.0"?>\n<lqn-model name="m">{"".join(processors)}</lqn-model>'


def server(inside: str, task: str = 'scheduling="fcfs"', processor: str = 'scheduling="fcfs"') -> str:
    return f'<processor name="p" {processor}><task name="s" {task}>{inside}</task></processor>'


def phases(name: str, *activities: str, entry: str = "") -> str:
    """An entry whose phases have these attributes (and calls, behind a >)."""
    inside = "".join(
        f'<activity name="{name}_{n}" phase="{n}" {a if ">" in a else a + ">"}</activity>'
        for n, a in enumerate(activities, 1)
    )
    return (
        f'<entry name="{name}" type="PH1PH2" {entry}><entry-phase-activities>{inside}'
        "</entry-phase-activities></entry>"
    )


def graph(activities: str, precedences: str = "", reply: str = "", entry: str = "e") -> str:
    """An entry with an activity graph; activities are "name" or "name:attributes", the first is bound."""
    elements = []
    for index, word in enumerate(activities.split(";")):
        name, _, attributes = word.strip().partition(":")
        bound = f' bound-to-entry="{entry}"' if index == 0 else ""
        elements.append(f'<activity name="{name}"{bound} {attributes}/>')
    replies = "".join(f'<reply-activity name="{n}"/>' for n in reply.split())
    tail = f'<reply-entry name="{entry}">{replies}</reply-entry>' if replies else ""
    return (
        f'<entry name="{entry}" type="NONE"/><task-activities>{"".join(elements)}{precedences}{tail}'
        "</task-activities>"
    )


def arc(before: str, behind: str, pre: str = "pre", post: str = "post", post_attributes: str = "") -> str:
    """A precedence; names may carry attributes, as in ``b:prob="0.3"``."""

    def side(names: str) -> str:
        pairs = [word.partition(":") for word in names.split()]
        return "".join(f'<activity name="{name}" {rest}/>' for name, _, rest in pairs)

    return (
        f"<precedence><{pre}>{side(before)}</{pre.split(maxsplit=1)[0]}>"
        f"<{post} {post_attributes}>{side(behind)}</{post}></precedence>"
    )


def bare(model: Model) -> Model:
    """The model without what it says about where it came from."""
    return replace(model, provenance={})


def there_and_back(model: Model, *, approximate: bool = False) -> Model:
    return bare(read(model_to_lqnx(model, approximate=approximate).text))
