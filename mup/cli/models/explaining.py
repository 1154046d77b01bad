"""What does a code of a finding mean, and which code is accepted in its place?"""

from __future__ import annotations

from textwrap import indent

from mup.errors import UsageError, did_you_mean

__all__ = ["explanation"]


def explanation(code: str) -> str:
    """Return the section of the reference about a code, with an example and its rewrite.

    Raises:
        UsageError: There is no such code, or the installation has no documentation.
    """
    from analyzer.static.diagnostics import CODES
    from analyzer.static.rewrites import REWRITES
    from mup.cli.help.documentation import find_page

    name = code.upper()
    if name not in CODES:
        hint = did_you_mean(name, list(CODES))
        raise UsageError(f"no finding has the code {code!r}", where="--explain", hint=hint)
    page = find_page("reference/diagnostics")
    section = next(one for one in page.sections() if one.heading.startswith(name))
    parts = [section.text.lstrip("# ").strip()]
    rewrite = REWRITES.get(name)
    if rewrite is not None:
        for title, text in (("Refused", rewrite.refused), ("Accepted", rewrite.accepted)):
            parts.append(f"{title}:\n\n{indent(text, '    ')}")
    return "\n\n".join(parts) + "\n"
