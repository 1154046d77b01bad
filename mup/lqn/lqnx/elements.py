"""Read an XML file into elements that know their place in it.

Expat does the parsing; everything that makes XML dangerous (document types, and with them entities and
references to other files) is refused, and so is nesting no layered queueing network needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from mup.errors import ModelError

__all__ = ["Element", "parse_xml", "read_xml"]

MAX_DEPTH = 100

_WITH_TEXT = ("parameters",)

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


@dataclass(slots=True)
class Element:
    """One element of an XML file.

    Attributes:
        tag: Without a namespace prefix.
        attributes: In file order, without those of a namespace (``xsi:...``, ``xmlns``).
        children: The elements inside.
        line: Where it begins, counted from 1; 0 if it was not read from a file.
        content: The text inside, of those elements whose text means something.
    """

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element] = field(default_factory=list)
    line: int = 0
    content: str = ""

    def all(self, *tags: str) -> list[Element]:
        """Return the children with one of these tags."""
        return [c for c in self.children if c.tag in tags]

    def walk(self) -> Iterator[Element]:
        """Yield this element and everything below it, in file order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def add(self, tag: str, **attributes: str) -> Element:
        """Append a child and return it; ``host_demand_mean`` becomes ``host-demand-mean``."""
        child = Element(tag, {name.replace("_", "-"): value for name, value in attributes.items()})
        self.children.append(child)
        return child

    def text(self, indent: str = "") -> str:
        """Return the element as XML, indented by two spaces per level."""
        attributes = "".join(f' {name}="{_escape(value)}"' for name, value in self.attributes.items())
        if not self.children:
            return f"{indent}<{self.tag}{attributes}/>\n"
        inside = "".join(child.text(indent + "  ") for child in self.children)
        return f"{indent}<{self.tag}{attributes}>\n{inside}{indent}</{self.tag}>\n"


def _escape(value: str) -> str:
    return "".join(_ESCAPES.get(character, character) for character in value)


def read_xml(path: str | Path) -> Element:
    """Return the root element of a file.

    Raises:
        ModelError: The file cannot be read, or see :func:`parse_xml`.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read the model: {error.strerror}", where=str(path)) from error
    return parse_xml(data, str(path))


def parse_xml(data: bytes, where: str) -> Element:
    """Return the root element of an XML document.

    Raises:
        ModelError: It is not XML (the message has line and column), declares a document type, or is
            nested too deeply.
    """
    parser = expat.ParserCreate()
    top = Element("")
    trail = [top]

    def place() -> str:
        return f"{where}: line {parser.CurrentLineNumber}, column {parser.CurrentColumnNumber + 1}"

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(trail) > MAX_DEPTH:
            raise ModelError(f"more than {MAX_DEPTH} elements inside each other", where=place())
        own = {k: v for k, v in attributes.items() if ":" not in k and k != "xmlns"}
        element = Element(name.rpartition(":")[2], own, line=parser.CurrentLineNumber)
        trail[-1].children.append(element)
        trail.append(element)

    def end(_name: str) -> None:
        trail.pop()

    def text(part: str) -> None:
        if trail[-1].tag in _WITH_TEXT:
            trail[-1].content += part

    def doctype(*_: object) -> None:
        raise ModelError(
            "has a document type, and with it entities; both are refused",
            where=place(),
            hint="delete the <!DOCTYPE ...> declaration",
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        raise ModelError(
            f"not XML: {expat.ErrorString(error.code)}",
            where=f"{where}: line {error.lineno}, column {error.offset + 1}",
        ) from error
    except (ValueError, LookupError) as error:
        raise ModelError(f"not XML: {error}", where=where) from error
    return top.children[0]
