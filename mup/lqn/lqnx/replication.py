"""Replication of tasks and processors in lqnx.

Replica i of a task calls its own replicas of another: ``fan-out`` of them, once each. That is a bigger
network of ordinary tasks, and this module writes it out: every element of a file with replication gets a
copy per replica, named ``x_1``, ``x_2``, ...

Source: the replication section of the LQNS user manual; reviewed against models flattened by its tools.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from mup.errors import ModelError
from mup.lqn.lqnx.elements import Element

__all__ = ["expand_replication"]

MAX_COPIES = 10_000
"""Of tasks and processors, in all; more is a mistake in the file, not a model that can be read or solved."""

_CALLS = ("synch-call", "asynch-call", "forwarding")
_FANS = ("fan-in", "fan-out")


@dataclass(slots=True)
class _Plan:
    """How often everything is copied, by name."""

    tasks: dict[str, int] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    fan_out: dict[tuple[str, str], int] = field(default_factory=dict)
    fan_in: dict[tuple[str, str], int] = field(default_factory=dict)


def expand_replication(root: Element) -> Element:
    """Return the file without replication; the same element if there is none in it.

    Raises:
        ModelError: A number is wrong, or the fans do not fit the numbers of replicas.
    """
    replicated = [e for e in root.walk() if e.tag in ("processor", "task") and "replication" in e.attributes]
    if all(e.attributes["replication"].strip() == "1" for e in replicated):
        return _strip(root)
    plan = _plan(root)
    copies = sum(plan.tasks.values()) + sum(_count(p, "replication") for p in root.all("processor"))
    if copies > MAX_COPIES:
        raise ModelError(
            f"the replicas add up to {copies} tasks and processors; at most {MAX_COPIES} are written out",
            where="replication",
        )
    flat = Element(root.tag, dict(root.attributes), line=root.line)
    for child in root.children:
        if child.tag != "processor":
            flat.children.append(child)
            continue
        copies = _count(child, "replication")
        for number in range(1, copies + 1):
            flat.children.append(_processor(child, number, copies, plan))
    return flat


def _count(element: Element, attribute: str) -> int:
    text = element.attributes.get(attribute, "1")
    name = element.attributes.get("name", "")
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ModelError(
            f"must be a whole number >= 1, got {text!r}",
            where=f"line {element.line}: {element.tag} {name!r}: {attribute}",
        )
    return value


def _plan(root: Element) -> _Plan:
    plan = _Plan()
    for processor in root.all("processor"):
        homes = _count(processor, "replication")
        for task in [e for e in processor.walk() if e.tag == "task"]:
            name = task.attributes.get("name", "")
            plan.tasks[name] = _count(task, "replication")
            if plan.tasks[name] % homes:
                raise ModelError(
                    f"{plan.tasks[name]} replicas do not divide evenly over the {homes} of its processor",
                    where=f"line {task.line}: task {name!r}: replication",
                )
            for entry in task.all("entry"):
                plan.owners[entry.attributes.get("name", "")] = name
            for fan in task.all("fan-out"):
                plan.fan_out[name, fan.attributes.get("dest", "")] = _count(fan, "value")
            for fan in task.all("fan-in"):
                plan.fan_in[fan.attributes.get("source", ""), name] = _count(fan, "value")
    return plan


def _fan_out(plan: _Plan, source: str, target: str, line: int) -> int:
    """How many replicas of the target each replica of the source calls."""
    sources, targets = plan.tasks[source], plan.tasks[target]
    out = plan.fan_out.get((source, target))
    back = plan.fan_in.get((source, target))
    if out is None:
        out = 1 if back is None else max(1, targets * back // sources)
    if (sources * out) % targets or back not in (None, sources * out // targets) or out > targets:
        raise ModelError(
            f"{sources} replicas of {source!r} calling {out} of {target!r} each do not fit the {targets} "
            f"replicas there" + (f" called by {back} each" if back is not None else ""),
            where=f"line {line}: fan-out",
        )
    return out


def _processor(original: Element, number: int, copies: int, plan: _Plan) -> Element:
    result = _bare(original, number)
    for child in original.children:
        if child.tag == "task":
            share = plan.tasks[child.attributes.get("name", "")] // copies
            for replica in range((number - 1) * share + 1, number * share + 1):
                result.children.append(_task(child, replica, plan))
        else:
            result.children.append(child)
    return result


def _task(original: Element, replica: int, plan: _Plan) -> Element:
    name = original.attributes.get("name", "")
    result = _bare(original, replica)
    for child in original.children:
        if child.tag == "entry":
            entry = _bare(child, replica)
            entry.children = [c for part in child.children for c in _part(part, name, replica, plan)]
            result.children.append(entry)
        elif child.tag == "task-activities":
            activities = Element(child.tag, dict(child.attributes), line=child.line)
            activities.children = [c for part in child.children for c in _graph(part, name, replica, plan)]
            result.children.append(activities)
        elif child.tag not in _FANS:
            result.children.append(child)
    return result


def _bare(original: Element, number: int) -> Element:
    """Copy an element without its children, under the name of the replica."""
    attributes = {k: v for k, v in original.attributes.items() if k != "replication"}
    if "name" in attributes:
        attributes["name"] = f"{attributes['name']}_{number}"
    return Element(original.tag, attributes, line=original.line)


def _part(part: Element, task: str, replica: int, plan: _Plan) -> list[Element]:
    """Copy something inside an entry: phases keep their names, calls go to the right replicas."""
    if part.tag in _CALLS:
        return _calls(part, task, replica, plan)
    copy = Element(part.tag, dict(part.attributes), line=part.line)
    copy.children = [c for child in part.children for c in _part(child, task, replica, plan)]
    return [copy]


def _graph(part: Element, task: str, replica: int, plan: _Plan) -> list[Element]:
    """Copy something inside an activity graph: activities are named after their replica too."""
    if part.tag in _CALLS:
        return _calls(part, task, replica, plan)
    copy = Element(part.tag, dict(part.attributes), line=part.line)
    for attribute in ("name", "end", "bound-to-entry"):
        if attribute in copy.attributes:
            copy.attributes[attribute] += f"_{replica}"
    copy.children = [c for child in part.children for c in _graph(child, task, replica, plan)]
    return [copy]


def _calls(call: Element, task: str, replica: int, plan: _Plan) -> list[Element]:
    target = plan.owners.get(call.attributes.get("dest", ""))
    if target is None:
        return [call]
    out, copies = _fan_out(plan, task, target, call.line), plan.tasks[target]
    if out > 1 and call.tag == "forwarding":
        raise ModelError(
            "a request is forwarded to one replica, not to several", where=f"line {call.line}: forwarding"
        )
    result = []
    for index in range(out):
        number = ((replica - 1) * out + index) % copies + 1
        attributes = {**call.attributes, "dest": f"{call.attributes['dest']}_{number}"}
        result.append(Element(call.tag, attributes, list(call.children), call.line))
    return result


def _strip(root: Element) -> Element:
    """Drop what says that there is one replica of everything."""
    for element in root.walk():
        if element.tag in ("processor", "task"):
            element.attributes.pop("replication", None)
        if element.tag == "task":
            element.children = [c for c in element.children if c.tag not in _FANS]
    return root
