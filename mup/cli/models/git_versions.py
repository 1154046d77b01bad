"""What did a project look like at a git commit? Files of it are written to a folder.

Analysis reads Python files and TOML files, and gets no others: pictures and data can be large. Services that
are to be started get the whole repository. Which is not touched in either case.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mup.errors import UsageError, did_you_mean

__all__ = ["Repository", "find_repository", "prefix_in_repository", "repository_of"]

FOLDERS = "compare two folders instead: mup compare OLD NEW"
SUFFIXES = (b".py", b".toml")
OF_A_HOOK = {"GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE"}
"""What git tells a hook about the commit that is being made; another folder is asked about here."""
LINK, FILE = (b"120000",), (b"100644", b"100755")


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository a project is in.

    Attributes:
        top: Its folder.
        inside: Path of the project's folder in it; "." if it is the whole.
    """

    top: Path
    inside: Path

    def commit(self, ref: str) -> str:
        """Return the hash of the commit that a branch, tag or other expression means.

        Raises:
            UsageError: There is none.
        """
        # Else an option of git could be passed as the name of a branch.
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        if found.returncode == 0:
            return found.stdout.decode().strip()
        names = self._run("for-each-ref", "--format=%(refname:short)").stdout.decode(errors="replace").split()
        shallow = self._run("rev-parse", "--is-shallow-repository").stdout.strip() == b"true"
        hint = did_you_mean(ref, names)
        if shallow:
            hint = f"this clone is shallow: fetch what it is compared with, e.g. git fetch origin {ref}"
        raise UsageError(f"no commit {ref!r} in this repository", where=str(self.top), hint=hint)

    def has(self, ref: str) -> bool:
        """Return whether something in the repository has that name."""
        found = self._run("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        return found.returncode == 0

    def changed_files(self) -> list[str]:
        """Return the files of the project with changes that are not committed; new ones, too."""
        listing = self._run("status", "--porcelain", "-z", "--untracked-files=all", "--", self._path())
        entries = [entry for entry in listing.stdout.split(b"\0") if entry[2:3] == b" "]
        names = (entry[3:] for entry in entries)
        return [name.decode(errors="replace") for name in names if name.endswith(SUFFIXES)]

    def write(self, commit: str, folder: Path) -> Path:
        """Write what an analysis reads of the project as it was at a commit.

        Returns:
            The project's folder, below ``folder``.

        Raises:
            UsageError: The project was not there.
        """
        files = list(self._files(commit))
        project = folder / self.inside
        if not files:
            raise self._not_there(commit)
        contents = self._contents([name for _, name, _ in files])
        links: list[tuple[Path, Path]] = []
        for (mode, _, path), content in zip(files, contents, strict=True):
            target = folder / os.fsdecode(path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if mode in LINK:
                links.append((target, target.parent / os.fsdecode(content)))
            else:
                target.write_bytes(content)
        for target, source in links:
            # A link that leads out of the commit leads to something of today, which it is not about.
            if source.resolve().is_relative_to(folder.resolve()) and source.exists():
                target.symlink_to(source.resolve())
        project.mkdir(parents=True, exist_ok=True)
        return project

    def check_out(self, commit: str, folder: Path) -> Path:
        """Write all files of the repository as they were at a commit, so that the project can be started.

        Returns:
            The project's folder, below ``folder``.

        Raises:
            UsageError: The project was not there, or git cannot write it.
        """
        folder.mkdir(parents=True)
        index = {"GIT_INDEX_FILE": str(folder.with_name(f"{folder.name}.index"))}
        for words in (("read-tree", commit), ("checkout-index", "--all", f"--prefix={folder}/")):
            done = self._run(*words, settings=index)
            if done.returncode != 0:
                raise UsageError(_message(done), where=str(self.top), hint=FOLDERS)
        project = folder / self.inside
        if not project.is_dir():
            raise self._not_there(commit)
        return project

    def _not_there(self, commit: str) -> UsageError:
        return UsageError(
            f"nothing of the project is in commit {commit[:10]}",
            where=str(self.top / self.inside),
            hint="name a commit that has the project, or PROJECT as it is called in both",
        )

    def _files(self, commit: str) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield mode, hash and path of every Python file and TOML file of the project."""
        listing = self._run("ls-tree", "-r", "-z", "--full-tree", commit, "--", self._path(below_top=True))
        if listing.returncode != 0:
            raise UsageError(_message(listing), where=str(self.top))
        for entry in listing.stdout.split(b"\0"):
            description, _, path = entry.partition(b"\t")
            parts = description.split()
            if path.endswith(SUFFIXES) and parts[0] in (*FILE, *LINK):
                yield parts[0], parts[2], path

    def _contents(self, objects: list[bytes]) -> Iterator[bytes]:
        """Yield the contents of objects, in one call of git."""
        answer = self._run("cat-file", "--batch", given=b"\n".join(objects) + b"\n").stdout
        at = 0
        for name in objects:
            end = answer.index(b"\n", at)
            words = answer[at:end].split()
            if len(words) != 3:
                raise UsageError(f"git cannot read object {name.decode()}", where=str(self.top), hint=FOLDERS)
            size = int(words[2])
            yield answer[end + 1 : end + 1 + size]
            at = end + 1 + size + 1

    def _path(self, *, below_top: bool = False) -> str:
        return self.inside.as_posix() if below_top or self.inside != Path() else "."

    def _run(
        self, *words: str, given: bytes = b"", settings: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        return _git(self.top, *words, given=given, settings=settings)


def find_repository(project: Path) -> Repository:
    """Return the repository that a project's folder is in.

    Raises:
        UsageError: It is in none, or git is not installed.
    """
    folder = project.parent if project.suffix in (".toml", ".py") else project
    if not folder.is_dir():
        raise UsageError("no such folder", where=str(project), hint="name the folder of the project")
    found = _git(folder, "rev-parse", "--show-toplevel")
    if found.returncode != 0:
        raise UsageError("the project is in no git repository", where=str(folder), hint=FOLDERS)
    top = Path(os.fsdecode(found.stdout.rstrip(b"\n"))).resolve()
    return Repository(top, folder.resolve().relative_to(top))


def repository_of(project: Path) -> Repository | None:
    """Return the repository that a project's folder is in, None if it is in none."""
    try:
        return find_repository(project)
    except UsageError:
        return None


def prefix_in_repository(project: Path) -> str:
    """Return the path of a project in its repository, else below the current folder, with a slash."""
    folder = (project.parent if project.is_file() else project).resolve()
    repository = repository_of(folder)
    top = Path.cwd() if repository is None else repository.top
    inside = folder.relative_to(top).as_posix() if folder.is_relative_to(top) else "."
    return "" if inside == "." else f"{inside}/"


def _git(
    folder: Path, *words: str, given: bytes = b"", settings: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    around = {name: value for name, value in os.environ.items() if name not in OF_A_HOOK}
    try:
        return subprocess.run(  # noqa: S603
            ["git", "-C", str(folder), "--no-optional-locks", *words],  # noqa: S607 - as the user's shell finds it
            input=given,
            capture_output=True,
            check=False,
            env=around | dict(settings or {}),
        )
    except FileNotFoundError as error:
        raise UsageError("git is not installed", hint=FOLDERS) from error


def _message(result: subprocess.CompletedProcess[bytes]) -> str:
    text = result.stderr.decode(errors="replace").strip().splitlines()
    return text[0] if text else "git failed and did not say why"
