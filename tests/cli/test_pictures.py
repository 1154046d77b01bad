"""Charts and reports are readable on light and dark backgrounds and phones; styles stay inside."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from command_line import activity, entry, model, run, saved, shop, users

from mup.cli.output.chart import Curve, Mark, Panel, draw_chart, draw_panels
from mup.cli.output.chart_theme import DARK, LIGHT
from mup.cli.output.step_chart import StepPanel, draw_steps
from mup.cli.predictions.report import Report, write_report
from mup.lqn import Call, Task
from mup.lqn.drawing import draw

SVG = "{http://www.w3.org/2000/svg}"
RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
COLOUR = re.compile(r"#[0-9a-f]{6}")


def chart() -> str:
    """Return a chart with everything in it."""
    seen = Curve([1, 4, 16], [20, 22, 90], [19, 20, 80], [21, 25, 99])
    return draw_chart("Response <time>", "clients", "ms", seen, seen, [19, 21, 80])


def panels() -> str:
    """Return two panels over numbers."""
    curve = Curve([0, 1, 2], [1, 2, 3], [0.9, 1.8, 2.5], [1.1, 2.2, 3.5])
    return draw_panels(
        "shop", "clients", ["1", "10", "100"], [Panel("ms", {"a": curve, "b": curve})] * 2,
        values=[1, 10, 100], marks=[Mark(50, "task A saturates at 50")],
    )  # fmt: skip


def steps() -> str:
    """Return the steps of an autoscaler."""
    return draw_steps(
        "m", "steps", ["1-1-A", "2-1-A"], [False, True], [StepPanel("s", {"predicted": [1, 2]})]
    )


PICTURES = {"chart": chart, "panels": panels, "steps": steps, "model": lambda: draw(shop())}


def rules(css: str) -> list[tuple[str, str]]:
    """Return selector and body of every rule, those of media queries too."""
    css = re.sub(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*[^{}]*)\}", r"\1", css)
    return [(s.strip(), body) for selector, body in RULE.findall(css) for s in selector.split(",")]


@pytest.mark.parametrize("name", PICTURES)
def test_styles_of_pictures_do_not_leak(name: str) -> None:
    """Every selector begins with the class of the picture's root, and ids are mup's own."""
    root = ET.fromstring(PICTURES[name]())
    own = "." + str(root.get("class"))
    assert own in (".mup-chart", ".mup-model")
    (style,) = root.iter(f"{SVG}style")
    found = rules(style.text or "")
    assert len(found) > 20
    assert [s for s, _ in found if not (s == own or s.startswith(own + " "))] == []
    assert "prefers-color-scheme: dark" in (style.text or "")
    assert all(e.get("id", "mup-").startswith("mup-") for e in root.iter())


def luminance(colour: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_charts_have_contrast(palette: object) -> None:
    """Texts 4.5 to 1, curves 3 to 1."""
    assert contrast(palette.ink, palette.paper) >= 4.5  # type: ignore[attr-defined]
    assert contrast(palette.soft, palette.paper) >= 4.5  # type: ignore[attr-defined]
    assert all(contrast(c, palette.paper) >= 3 for c in palette.series)  # type: ignore[attr-defined]


def themes(css: str) -> dict[str, dict[str, dict[str, str]]]:
    """Return per theme and selector the properties; the dark theme has what it does not change from the light one."""
    dark = "".join(re.findall(r"@media[^{]*\{((?:[^{}]*\{[^{}]*\})*)", css))
    light = css.replace(dark, "") if dark else css
    found: dict[str, dict[str, dict[str, str]]] = {}
    for theme, text in (("light", light), ("dark", light + dark)):
        of: dict[str, dict[str, str]] = {}
        for selector, body in rules(text):
            pairs = [p.split(":", 1) for p in body.split(";") if ":" in p]
            of.setdefault(selector, {}).update({k.strip(): v.strip() for k, v in pairs})
        found[theme] = of
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_models_have_contrast(theme: str) -> None:
    """Words on every box that has words on it."""
    (style,) = ET.fromstring(draw(shop())).iter(f"{SVG}style")
    css = themes(style.text or "")[theme]

    def fill(name: str) -> str:
        return css[f".mup-model {name}"]["fill"]

    for box in (".task", ".reference", ".network", ".entry", ".activity", ".communication", ".think",
                ".processor", ".paper"):  # fmt: skip
        for words in ("text", ".soft"):
            assert contrast(fill(words), fill(box)) >= 4.5, (words, box)
        assert contrast(fill("text.grey"), fill(".entry")) >= 4.5


def report(folder: Path, *, summary: str = "All is well.") -> str:
    """Write a report with everything in it."""
    write_report(
        Report(
            title="t", subtitle="s", summary=summary, charts=[chart()], columns=["scenario", "ms"],
            rows=[["1 client", "20"]], table_note="n", coverage="c", uncovered=["A/very/long/path" * 20],
            warnings=["w"], model_svg=draw(shop()), whatif_text="x", whatif_columns=["change", "ms"],
            whatif_rows=[["2 clients", "30"]], facts=[("machine", "m")],
        ),
        folder / "r.html",
    )  # fmt: skip
    return (folder / "r.html").read_text()


def test_reports_have_a_dark_theme_with_contrast(tmp_path: Path) -> None:
    """Page, quiet texts and headings of tables, in both themes."""
    text = report(tmp_path)
    (css,) = re.findall(r"<style>\s*(:root.*?)</style>", text, re.DOTALL)
    assert "color-scheme: light dark" in css
    for theme in themes(css).values():
        root = theme[":root"]
        for words in ("--ink", "--quiet"):
            for ground in ("--paper", "--raised"):
                assert contrast(root[words], root[ground]) >= 4.5
    # No colour but those of the themes: nothing stays white on a dark page.
    body = css.replace("".join(re.findall(r":root \{[^}]*\}", css)), "")
    assert not COLOUR.findall(re.sub(r":root \{[^}]*\}", "", body))


def test_wide_things_scroll_inside_the_page(tmp_path: Path) -> None:
    """Tables, charts and the model are in containers that scroll; only charts are made larger or smaller."""
    text = report(tmp_path)
    css = themes(re.findall(r"<style>\s*(:root.*?)</style>", text, re.DOTALL)[0])["light"]
    assert css[".scroll"]["overflow-x"] == css["figure"]["overflow-x"] == "auto"
    assert css[".scroll"]["max-width"] == css["figure"]["max-width"] == "100%"
    assert "width" not in css[".model svg"]
    assert css[".chart svg"]["max-width"].endswith("rem")
    outside = re.sub(r"<(figure|div class=\"scroll\").*?</(figure|div)>", "", text, flags=re.DOTALL)
    assert "<table" not in outside
    assert "<svg" not in outside
    assert '<meta name="viewport"' in text


def test_tables_say_what_their_headings_are_about(tmp_path: Path) -> None:
    """Captions, and a scope for every heading."""
    text = report(tmp_path)
    assert text.count("<caption>") == text.count("<table") == 3
    headings = re.findall(r"<th\b[^>]*>", text)
    assert headings
    assert all('scope="col"' in h or 'scope="row"' in h for h in headings)


def test_charts_can_be_read_at_the_width_of_a_phone() -> None:
    """Scaled to 358 pixels, what a page of 390 leaves, text is at least 8.5 pixels high."""
    root = ET.fromstring(chart())
    width = float(str(root.get("viewBox")).split()[2])
    assert float(str(root.get("font-size"))) * 358 / width >= 8.5


def test_positions_are_proportional_and_saturation_is_a_line() -> None:
    """1, 10 and 100 clients: ten times the distance; the line stands where 50 is."""
    root = ET.fromstring(panels())
    circles = [float(c.get("cx", 0)) for c in root.iter(f"{SVG}circle")][:3]
    assert (circles[2] - circles[0]) / (circles[1] - circles[0]) == pytest.approx(11, rel=0.01)
    marks = [p for p in root.iter(f"{SVG}path") if p.get("stroke-dasharray")]
    assert len(marks) == 2
    at = float(re.findall(r"M([\d.]+)", marks[0].get("d", ""))[0])
    assert at == pytest.approx(circles[0] + (circles[2] - circles[0]) * 49 / 99, abs=1)
    texts = [t.text for t in root.iter(f"{SVG}text")]
    assert texts.count("task A saturates at 50") == 2


def test_a_mark_beyond_the_axis_is_said_and_labels_do_not_run_into_each_other() -> None:
    """Nothing is drawn outside, and of labels that are too close some are left out, never the last."""
    curve = Curve([0, 1, 2], [1, 2, 3], [None] * 3, [None] * 3)
    drawn = draw_panels(
        "t", "clients", ["17", "18", "1000"], [Panel("ms", {"": curve})], values=[17, 18, 1000],
        marks=[Mark(9000, "A saturates at 9000")],
    )  # fmt: skip
    texts = [t.text for t in ET.fromstring(drawn).iter(f"{SVG}text")]
    assert "A saturates at 9000: beyond this axis" in texts
    assert "1000" in texts
    assert not {"17", "18"} <= set(texts)


def test_coinciding_curves_are_both_seen() -> None:
    """The one below is wider."""
    lines = list(ET.fromstring(panels()).iter(f"{SVG}polyline"))
    assert float(lines[0].get("stroke-width", 0)) >= float(lines[1].get("stroke-width", 0)) + 1.5


@pytest.mark.parametrize("command", ["whatif", "autoscale", "graph"])
@pytest.mark.parametrize(
    ("name", "says"),
    [("x.png", "ends in .png"), ("no/x.svg", "does not exist"), ("/proc/x.svg", "cannot write")],
)
def test_pictures_that_cannot_be_are_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, command: str, name: str, says: str
) -> None:
    """Another format by its ending, and places that cannot be written; nothing is left behind."""
    tested = model(
        users(Call(task="A", entry="/a/")), Task(name="A", entries=(entry("/a/", activity("w", 0.05)),))
    )
    file = saved(tmp_path, tested)
    option = {"whatif": ("--clients", "2", "--plot"), "autoscale": ("--plot",), "graph": ("-o",)}[command]
    code, out, err = run(capsys, command, file, *option, str(tmp_path / name))
    assert (code, out) == (2, "")
    assert says in err
    assert [p.name for p in tmp_path.iterdir()] == ["model.json"]


def test_tables_that_cannot_be_written_are_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """--csv into a folder where no file can be made."""
    code, out, err = run(capsys, "whatif", saved(tmp_path, shop()), "--clients", "2", "--csv", "/proc/x.csv")
    assert (code, out) == (2, "")
    assert "/proc/x.csv: cannot write" in err


def test_one_step_of_ticks_on_both_sides_of_zero() -> None:
    """A panel of errors from -5 to 48 % has ticks every 10, not five more between 0 and -5."""
    panel = StepPanel("error, %", {"error": [-1.0, 48.0]}, lines=(-5.0, 5.0))
    drawn = draw_steps("m", "steps", ["1", "2"], [False, False], [panel])
    shown = [int(one) for one in re.findall(r'text-anchor="end"[^>]*>(-?\d+)<', drawn)]
    assert shown[:-2] == [-10, 0, 10, 20, 30, 40, 50]
