"""The README is read in a minute, and its picture is seen."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from doc_pages import ROOT

WORDS_PER_MINUTE = 238
"""Silent reading of English non-fiction by adults (Brysbaert, "How many words do we read per minute?", 2019)."""

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_what_it_is_how_accurate_and_how_to_start_are_read_in_a_minute() -> None:
    before, heading, _ = README.partition("## Where to go")
    assert heading
    prose = re.sub(r"```.*?```", "", before, flags=re.DOTALL)
    prose = re.sub(r"\]\([^)]*\)", "]", prose)
    assert len(prose.split()) <= WORDS_PER_MINUTE


def test_its_picture_is_one_that_browsers_show_in_light_and_dark() -> None:
    (link,) = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    text = (ROOT / link).read_text(encoding="utf-8")
    picture = ET.fromstring(text)
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    width, height = map(float, picture.attrib["viewBox"].split()[2:])
    assert 1 < width / height < 2
    assert "prefers-color-scheme: dark" in text
    shown = " ".join(picture.itertext())
    assert "users" in shown.lower() or "clients" in shown.lower()
    # Images of a README run no scripts and load nothing.
    assert "<script" not in text
    assert not re.search(r"(?:href|src)\s*=\s*[\"']https?:", text)
