"""Is a change of the deployment told at its line of mup.toml, and nothing secret of it?"""

from __future__ import annotations

from pathlib import Path

import pytest
from project_versions import SOURCE, TOML, line_of, project, told

from analyzer.static import analyse_project
from analyzer.static.deployment_changes import deployment_changes
from analyzer.static.project_version import Version
from mup.project import load_project

TOML_CHANGES = [
    pytest.param("pool_size = 2", "pool_size = 3", ("deployment", "B", "pool 2 -> 3", "pool_size"), id="pool"),
    pytest.param("pool_size = 2", "pool_size = 2\nqueue_limit = 5",
                 ("deployment", "B", "queue_limit not set -> 5", "queue_limit"), id="another-setting"),
    pytest.param("pool_size = 2", 'pool_size = 2\nenv = { KEY = "secret" }',
                 ("deployment", "B", "environment changed: KEY", "env"), id="environment-without-its-values"),
    pytest.param("port = 0", "port = 0\ncache = 0.5",
                 ("deployment", "x", "registry cache 1 -> 0.5", "cache"), id="registry"),
    pytest.param("[databases.db]", "[databases.db]\n[databases.more]",
                 ("database", "more", "the database is new", "[databases.more]"), id="database-that-is-new"),
    pytest.param("[databases.db]", '[databases.db]\nuri = "mongodb://u:secret@h"',
                 ("database", "db", "another server", "uri"), id="server-without-its-address"),
    pytest.param('client = "services:User"', 'client = "services:Other"',
                 ("client", "Other", "the scenario was that of User, is that of Other: loads of the two versions are not the same", "client"),
                 id="another-client"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "expected"), TOML_CHANGES)
def test_one_change_of_the_project_is_one_difference(
    tmp_path: Path, old: str, new: str, expected: tuple[str, str, str, str]
) -> None:
    """Settings are told at their line of mup.toml, and nothing secret of them."""
    assert old in TOML
    toml = TOML.replace("[project]", '[project]\nname = "x"')
    changed = toml.replace(old, new)
    kind, subject, text, place = expected
    found = told(project(tmp_path / "1", toml=toml), project(tmp_path / "2", toml=changed))
    assert found == [(kind, (subject,), text, "mup.toml", line_of(changed, place))]


def test_a_project_file_of_another_name(tmp_path: Path) -> None:
    """Settings are told at the lines of the file the project was named by."""
    versions = []
    for size in (2, 3):
        (tmp_path / "services.py").write_text(SOURCE)
        file = tmp_path / f"pools{size}.toml"
        file.write_text(TOML.replace("pool_size = 2", f"pool_size = {size}"))
        found = load_project(file)
        versions.append(Version(analyse_project(found, with_code=True), found, file))
    (one,) = deployment_changes(*versions)
    assert (one.text, one.file, one.line) == ("pool 2 -> 3", "pools3.toml", line_of(TOML, "pool_size"))
