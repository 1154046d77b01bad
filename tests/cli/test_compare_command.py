"""Does ``mup compare`` tell what a change did, in every form, and say what is wrong with what it is given?"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
from command_line import run

from mup.cli.main import main

SERVICES = """\
from mup import EP, MS, Client, Communication


class A(MS):
    pool_size = 4

    @EP("/a/")
    def a(self, comm: Communication) -> None:
        words = comm.params["words"]
        answer = comm.call("B", "/b/", {}).get()
        comm.respond([answer, len(words)])


class B(MS):
    @EP("/b/")
    def b(self, comm: Communication) -> None:
        comm.respond(1)


class User(Client):
    async def scenario(self, comm: Communication) -> None:
        await self.think(0.1)
        await comm.call("A", "/a/", {"words": []})
"""
TOML = """\
[project]
client = "services:User"
[services.A]
class = "services:A"
[services.B]
class = "services:B"
"""
SLOW = SERVICES.replace(
    '        answer = comm.call("B", "/b/", {}).get()\n',
    '        for word in words:\n            answer = comm.call("B", "/b/", {}).get()\n',
)
TEXT = "B/b/ was called once, is called once per word"


def written(folder: Path, services: str = SERVICES, toml: str = TOML) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "services.py").write_text(services)
    (folder / "mup.toml").write_text(toml)
    return folder


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=T", "-c", "user.email=t@localhost", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *settings, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the project in ``shop``: tag ``v1``, then a comment (``v2``), then a slow loop."""
    git(tmp_path, "init", "-q")
    monkeypatch.chdir(tmp_path)
    for tag, services in (("v1", SERVICES), ("v2", f"# new\n{SERVICES}"), ("v3", SLOW)):
        shop = written(tmp_path / "shop", services)
        (shop / "picture.png").write_bytes(b"\0" * 1000)
        git(tmp_path, "add", "-A")
        git(tmp_path, "commit", "-qm", tag)
        git(tmp_path, "tag", tag)
    return tmp_path


def test_a_comment_is_no_change(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 0, and one line."""
    assert run(capsys, "compare", "v1", "v2", "shop") == (0, "v1 -> v2: nothing changed in meaning\n", "")


def test_a_change_is_told_in_words_with_its_line(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit code 1; a difference is a row."""
    code, out, err = run(capsys, "compare", "v1", "HEAD", "shop")
    assert (code, err) == (1, "")
    row = next(line for line in out.split("\n") if line.startswith("calls"))
    assert row.split() == ["calls", "A/a/", *TEXT.split(), "services.py:11"]
    assert out.endswith("1 difference\n")


def test_as_json(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One document; of an unchanged version, too."""
    code, out, _ = run(capsys, "compare", "v1", "v3", "shop", "--json")
    document = json.loads(out)
    assert (code, document["equal"]) == (1, False)
    (one,) = document["differences"]
    assert one == {"kind": "calls", "subjects": ["A/a/"], "text": TEXT, "file": "services.py", "line": 11}
    code, out, _ = run(capsys, "compare", "v1", "v2", "shop", "--json")
    assert (code, json.loads(out)["equal"]) == (0, True)


def test_as_markdown(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table that a pull request shows; names with characters of Markdown stay what they are."""
    code, out, _ = run(capsys, "compare", "v1", "v3", "shop", "--markdown")
    assert code == 1
    assert f"| calls | `A/a/` | {TEXT} | `services.py:11` |" in out.split("\n")
    code, out, _ = run(capsys, "compare", "v1", "v2", "shop", "--markdown")
    assert (code, out) == (0, "**mup**: nothing changed in meaning between `v1` and `v2`.\n")


def test_beside_lines(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files are named from the top of the repository, in GitHub's commands and in SARIF."""
    log = repository / "mup.sarif"
    code, out, _ = run(capsys, "compare", "v1", "v3", "shop", "--annotations", "--sarif", str(log))
    assert code == 1
    assert f"::notice file=shop/services.py,line=11,title=mup%3A calls::A/a/: {TEXT}" in out.split("\n")
    (found,) = json.loads(log.read_text())["runs"]
    (result,) = found["results"]
    location = result["locations"][0]["physicalLocation"]
    assert location["artifactLocation"]["uri"] == "shop/services.py"
    assert location["region"] == {"startLine": 11}
    assert [rule["id"] for rule in found["tool"]["driver"]["rules"]] == [result["ruleId"]] == ["mup/calls"]
    _, out, err = run(capsys, "compare", "v1", "v3", "shop", "--annotations", "--markdown")
    assert "::notice" in err
    assert "::notice" not in out


def test_what_makes_a_model_impossible_is_shown_beside_its_line(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error of the new version: exit code 2, and still an annotation and a result."""
    written(repository / "shop", SERVICES.replace('"/b/", {})', '"/none/", {})'))
    log = repository / "mup.sarif"
    code, out, err = run(capsys, "compare", "v1", "./shop", "--annotations", "--sarif", str(log))
    assert code == 2
    assert "HEAD cannot be analysed: 1 error in the source" in err
    assert out.startswith("::error file=shop/services.py,line=10,title=MUP012::")
    (result,) = json.loads(log.read_text())["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("MUP012", "error")


def test_the_working_tree_as_the_new_version(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder can stand for what is not committed; then that is what PROJECT is."""
    written(repository / "shop", SERVICES.replace("pool_size = 4", "pool_size = 8"))
    code, out, err = run(capsys, "compare", "v1", "./shop")
    assert (code, err) == (1, "")
    assert "pool 4 -> 8" in out
    assert "services.py:5" in out


def test_a_dirty_tree_is_said(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Commits do not have what was not committed, which is easily forgotten."""
    (repository / "shop" / "more.py").write_text("x = 1\n")
    code, _, err = run(capsys, "compare", "v1", "v2", "shop")
    assert code == 0
    assert err == ("mup: changes that are not committed are left out (shop/more.py); '.' as HEAD has them\n")


def test_two_folders_need_no_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Projects, folders of source, or one file each; with PROJECT below both."""
    written(tmp_path / "old" / "shop")
    written(tmp_path / "new" / "shop", SLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    for words in (("old/shop", "new/shop"), ("old", "new", "shop"), ("old", "new"),
                  ("old/shop/services.py", "new/shop/services.py"), ("old/shop/mup.toml", "new/shop")):  # fmt: skip
        code, out, _ = run(capsys, "compare", *words)
        assert (code, TEXT in " ".join(out.split())) == (1, True), words


BAD = [
    pytest.param(("v1", "nothing", "shop"), r"no commit 'nothing' in this repository.*v1", id="unknown-ref"),
    pytest.param(("v1", "--output=x", "shop"), "no such option", id="option"),
    pytest.param(("v1", "v2", "other"), "no such folder", id="no-project"),
    pytest.param(("v1", "v2", "empty"), "nothing of the project is in commit", id="project-is-not-there"),
    pytest.param(("broken", "v2", "shop"), r"broken:shop/mup.toml.*unknown table", id="base-with-a-wrong-toml"),
    pytest.param(("unfit", "v2", "shop"), r"unfit: BASE cannot be analysed: 1 error", id="base-with-errors"),
    pytest.param(("both", "v1", "shop"), r"'both' is a folder and a commit.*write ./both", id="both"),
    pytest.param(("v1", "v2", "shop", "--sarif", "none/x.sarif"), "folder does not exist", id="sarif"),
    pytest.param(("v1", "v2", "shop", "--sarif", "shop/mup.toml"), "mup.toml", id="sarif-over-something-else"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_is_one_message(
    words: tuple[str, ...], message: str, repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It says what is wrong and what to do; exit code 2, no traceback."""
    (repository / "empty").mkdir()
    for name, (services, toml) in {
        "broken": (SERVICES, TOML + "[nonsense]\n"),
        "unfit": (SERVICES.replace('"/b/", {})', '"/none/", {})'), TOML),
        "both": (SERVICES, TOML),
    }.items():
        git(repository, "checkout", "-qb", name, "v1")
        written(repository / "shop", services, toml)
        git(repository, "commit", "-qam", name, "--allow-empty")
    git(repository, "checkout", "-q", "v3")
    (repository / "both").mkdir()
    code, _, err = run(capsys, "compare", *words)
    assert code == 2
    assert re.search(message, err, re.DOTALL), err
    assert "Traceback" not in err
    assert err.count("mup: error:") == 1


def test_within_a_hook_of_git(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What git tells a hook about the commit being made is not taken for the repository to look at."""
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/index")
    code, out, _ = run(capsys, "compare", "v1", "v3", "shop")
    assert code == 1
    assert "services.py:11" in out


def test_another_file_than_mup_toml(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A project can be named by its file; of commits it is there, too."""
    for tag, size in (("t1", 1), ("t2", 2)):
        (repository / "shop" / "big.toml").write_text(
            TOML.replace('"services:B"', f'"services:B"\npool_size = {size}')
        )
        git(repository, "add", "-A")
        git(repository, "commit", "-qm", tag)
        git(repository, "tag", tag)
    code, out, err = run(capsys, "compare", "t1", "t2", "shop/big.toml", "--json")
    assert (code, err) == (1, "")
    (one,) = json.loads(out)["differences"]
    assert (one["text"], one["file"], one["line"]) == ("pool 1 -> 2", "big.toml", 7)


def test_two_forms_of_one_output(repository: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Standard output is one document, of one kind."""
    code, out, _ = run(capsys, "compare", "v1", "v2", "shop", "--json", "--markdown")
    assert code == 2
    assert "two forms of the same output" in json.loads(out)["error"]["message"]


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Outside of a repository, and without the program, two folders are the remedy."""
    monkeypatch.chdir(written(tmp_path / "shop"))
    code, _, err = run(capsys, "compare", "main", "HEAD")
    assert code == 2
    assert "'main' is no folder, so it must be a commit: the project is in no git repository" in err
    assert "mup compare OLD NEW" in err
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, err = run(capsys, "compare", "main", "HEAD")
    assert code == 2
    assert "git is not installed" in err


def test_a_shallow_clone_says_what_to_fetch(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """As in continuous integration, where only the newest commit is there."""
    clone = tmp_path_factory.mktemp("clone")
    git(clone, "clone", "-q", "--depth=1", "--no-tags", f"file://{repository}", "here")
    monkeypatch.chdir(clone / "here")
    code, _, err = run(capsys, "compare", "v1", "HEAD", "shop")
    assert code == 2
    assert "this clone is shallow" in err
    assert "git fetch origin v1" in err


def test_nothing_is_left_behind(
    repository: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits are written to a folder that goes, the repository stays as it was, and links lead nowhere else."""
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    (repository / "shop" / "link.py").symlink_to("/etc/passwd")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "link")
    state = git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")
    with pytest.raises(SystemExit) as ended:
        main(["compare", "v3", "HEAD", "shop"])
    assert ended.value.code == 0
    assert list(temporary.iterdir()) == []
    assert (git(repository, "status", "--porcelain"), git(repository, "rev-parse", "HEAD")) == state
