"""The promise: whatever commands do, the disk is byte for byte the same, and what they did can be reviewed."""

from __future__ import annotations

import io
import random
import shlex
import subprocess
import tarfile
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codeagent_lsp.config import ShellSettings
from codeagent_lsp.errors import FileRefused
from codeagent_lsp.shadow.probe import Isolator
from codeagent_lsp.shadow.shell import REPORT_VARIABLE, Command, CommandResult, Layer, Level, Shell
from codeagent_lsp.shadow.workspace import ShadowWorkspace, executing
from codeagent_lsp.workspace.changes.changeset import Changeset, Current
from codeagent_lsp.workspace.text.encoding import decode
from tests.examples import volume
from tests.shadow.fakes import Desk, desk, frozen
from tests.shadow.rig import needs_overlay

LEVELS: tuple[Level, ...] = ("overlay", "copy")
COMMANDS = volume(250)  # at each of the two levels

pytestmark = needs_overlay


@dataclass
class Bench:
    """A desk with a real shadow workspace at one level."""

    desk: Desk
    shadow: ShadowWorkspace
    shell: Shell
    told: set[str] = field(default_factory=set)

    async def run(self, script: str) -> CommandResult:
        return await self.shell.run(Command(script, str(self.desk.root), seconds=60))


async def yes(paths: tuple[str, ...]) -> bool:
    return True


@pytest.fixture(params=LEVELS)
async def bench(request: pytest.FixtureRequest, workspace: Path, tmp_path: Path) -> AsyncIterator[Bench]:
    settings = ShellSettings(isolation=request.param)
    isolator = Isolator(str(tmp_path / "state"))
    ws = desk(workspace)
    isolation = isolator.isolation(settings, [str(ws.root)])
    assert isolation.complete, isolation

    def opened(folders: tuple[str, ...]) -> Layer:
        return isolator.open(settings, folders)

    shadow = ShadowWorkspace(isolation, opened, executing(lambda: settings, tmp_path / "spool"))
    yield Bench(ws, shadow, shadow.bind(ws.view, ws.staging, yes))
    await shadow.close()


# --- any commands at all


FOLDERS = ("", "src/", "src/deep/", "with space/", "ünï/")
NAMES = ("a.py", "b.txt", "quo'te\".md", "-dash", "new\nline", "$HOME", "*", "日本.txt", "c.txt", "x.log")


def a_tree(ws: Desk) -> None:
    ws.write(".gitignore", "*.log\nbuild/\n")
    ws.write("build/out.o", "object\n")
    ws.write("node_modules/m/index.js", "module\n")
    ws.write(".git/HEAD", "ref: refs/heads/main\n")
    ws.write("logo.png", b"\x89PNG\0\1")
    ws.write("latin.txt", b"caf\xe9\r\n")
    ws.write("mark.txt", b"\xef\xbb\xbfmark\n")
    for number, folder in enumerate(FOLDERS):
        for name in NAMES[: len(NAMES) - number]:
            ws.write(folder + name, f"{name}\nin {folder}\n")
    (ws.root / "src/link").symlink_to("a.py")
    (ws.root / "folder-link").symlink_to("src")
    (ws.root / "src/a.py").chmod(0o755)


def a_command(chance: random.Random) -> str:
    """One of everything that changes a tree, on names that are hard on a shell. What is left comes as a report, packed:
    many long files of zeros would be more than reports may have.
    """

    def name() -> str:
        return shlex.quote("./" + chance.choice(FOLDERS) + chance.choice(NAMES))

    def folder() -> str:
        return shlex.quote("./" + chance.choice(FOLDERS))

    word = f"w{chance.randrange(1000)}"
    commands: list[Callable[[], str]] = [
        lambda: f"echo {word} > {name()}",
        lambda: f"printf '{word}\\r\\n' >> {name()}",
        lambda: f"sed -i s/in/{word}/ {name()}",
        lambda: f"rm {name()}",
        lambda: f"mv {name()} {name()}",
        lambda: f"mv {name()} {folder()}",
        lambda: f"cp -p {name()} {name()}",
        lambda: f"cp -r ./src ./copy-{word}",
        lambda: f"mv ./src/deep ./moved-{word}",
        lambda: "mv ./moved-* ./src/deep",
        lambda: f"rm -rf {folder()}[a-z]*",
        lambda: f"rm -rf ./copy-* ./src/deep; echo {word} > ./src/deep",
        lambda: f"rm -f ./b.txt; mkdir -p ./b.txt; echo {word} > ./b.txt/inner.txt",
        lambda: f"chmod {chance.choice(['755', '600', '400', 'u+s'])} {name()}",
        lambda: f"ln -sf /etc/passwd {name()}",
        lambda: f"ln -f {name()} {name()}",
        lambda: f"mkdir -p ./made/{word}/x; echo {word} > ./made/{word}/x/y.txt",
        lambda: f"mkdir -p ./empty-{word}",
        lambda: f"touch {name()}",
        lambda: f"truncate -s {chance.choice(['0', '3', '2M'])} {name()}",
        lambda: f"printf '\\0{word}' > {name()}",
        lambda: f"mkfifo ./pipe-{word}",
        lambda: "echo b >> build/out.o; mkdir -p build/sub; echo s > build/sub/s.o",
        lambda: "echo m > node_modules/m/index.js; echo h > .git/HEAD; rm -f .git/HEAD",
        lambda: "find . -name '*.txt' -newer ./.gitignore -delete",
        lambda: "echo x > ../beside/escaped; rm -rf ../beside; touch ../escaped",
        lambda: "echo x > ./folder-link/through.txt; echo y > ./src/link",
        lambda: "rm -rf ./* ./.gitignore",
    ]
    weights = [1.0] * (len(commands) - 1) + [0.1]
    chosen = chance.choices(commands, weights, k=chance.randint(1, 4))
    return "; ".join(make() for make in chosen) + f'; tar -czf "${REPORT_VARIABLE}/tree.tgz" --exclude=./.git . ; true'


def shown(result: CommandResult, ws: Desk) -> dict[str, str]:
    """The texts that the command saw at its end, without what is ignored."""
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(result.finished.reports["tree.tgz"]), errors="surrogateescape") as tree:
        for member in tree:
            if member.isreg():
                file = tree.extractfile(member)
                found[member.name] = file.read() if file else b""
            elif member.islnk() and member.linkname in found:  # else a second name of a link
                found[member.name] = found[member.linkname]
    texts = {}
    for name, data in found.items():
        path = ws.path(name.removeprefix("./"))
        if len(data) <= ws.view.max_bytes and not ws.view.is_ignored(path):
            try:
                texts[name.removeprefix("./")] = decode(data).text
            except FileRefused:  # binary
                pass
    return texts


def applied(ws: Desk) -> dict[str, str]:
    """What the user would have after accepting everything that is staged."""
    staged, view = ws.staging.changeset, ws.view
    texts = {}
    for path in view.walk(str(ws.root)):
        try:
            file = view.base(path)
        except FileRefused:
            continue
        if file is not None:
            texts[path] = file.text
    for path in {path for change in staged for path in (change.moved_from, change.path) if path is not None}:
        texts.pop(path, None)
    texts.update((change.path, change.text) for change in staged if change.text is not None)
    return {path.removeprefix(f"{ws.root}/"): text for path, text in texts.items()}


def the_user_works(ws: Desk, chance: random.Random) -> None:
    """Types, closes files, undoes and discards; never saves."""
    name = chance.choice(["a.py", "src/b.txt", "latin.txt", "begun.txt"])
    match chance.randrange(5):
        case 0 | 1:
            ws.open(name, f"typed {chance.randrange(1000)}\n", chance.randrange(1, 1000))
        case 2:
            ws.buffers.documents.pop(ws.path(name), None)
        case 3 if ws.staging.changeset:
            kept = ws.staging.changeset.files[::2]  # without the deletion of a file, nothing can be below it
            fits = (change for change in kept if not any(map(Path.is_file, Path(change.path).parents)))
            ws.staging.reset(Changeset(tuple(fits)))
        case 4:
            ws.stage(name, f"staged {chance.randrange(1000)}\n")


@pytest.mark.slow
async def test_any_commands_leave_the_disk_alone_and_can_be_reviewed(bench: Bench) -> None:
    ws, chance = bench.desk, random.Random(f"promise {bench.shell.isolation.level}")
    a_tree(ws)
    beside = ws.root.parent / "beside"
    beside.mkdir()
    (beside / "theirs.txt").write_text("theirs\n")
    before = {**frozen(ws.root), **frozen(beside)}
    staged = 0
    for number in range(COMMANDS):
        if number % 3 == 0:
            the_user_works(ws, chance)
        if number % 40 == 39:
            ws.staging.reset(Changeset())
        script = a_command(chance)
        result = await bench.run(script)
        assert {**frozen(ws.root), **frozen(beside)} == before, script
        assert not (ws.root.parent / "escaped").exists()
        assert result.finished.ending == "exited", result.finished
        staged += len(result.staged)
        bench.told.update(path.removeprefix(f"{ws.root}/") for path, _ in result.left_out)
        check(bench, script, shown(result, ws), ws.seen())
        assert applied(ws) == ws.seen(), script
    assert staged > COMMANDS


def check(bench: Bench, script: str, shadow: dict[str, str], seen: dict[str, str]) -> None:
    """What the run sees is what the command left, but for what it was told of."""
    for name in shadow.keys() | seen.keys():
        if shadow.get(name) == seen.get(name):
            bench.told.discard(name)
        else:
            assert covered(name, bench.told), f"{script}\n{name!r}: {shadow.get(name)!r} is seen as {seen.get(name)!r}"


def covered(name: str, told: Iterable[str]) -> bool:
    return any(name == other or name.startswith(f"{other}/") for other in told)


# --- what it is good for


SUITE = """
import pathlib, sys
sys.path.insert(0, ".")
import code_under_test, helper
assert code_under_test.answer() == 42, code_under_test.answer()
assert helper.NAME == "staged"
assert not pathlib.Path("obsolete.py").exists()
print("1 passed")
"""


@pytest.mark.slow
async def test_a_suite_that_fails_on_the_disk_passes_on_what_the_run_sees(bench: Bench) -> None:
    ws = bench.desk
    ws.write("suite.py", SUITE)
    ws.write("code_under_test.py", "def answer():\n    return 41\n")
    ws.write("obsolete.py", "")
    assert (await bench.run("python3 suite.py")).finished.exit_code == 1
    ws.open("code_under_test.py", "def answer():\n    return 42\n")
    ws.stage("helper.py", 'NAME = "staged"\n')
    ws.stage("obsolete.py", None)
    result = await bench.run("python3 suite.py")
    assert (result.finished.exit_code, result.finished.output) == (0, "1 passed\n")
    assert result.staged == ()
    assert not (ws.root / "helper.py").exists()


@pytest.mark.slow
async def test_what_was_compiled_of_one_version_is_not_run_for_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Versions of the same length, as fast after each other as it goes: Python tells them apart by size and second."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    ws = bench.desk
    ws.write("version.py", "NUMBER = 10\n")
    seen = [(await bench.run("python3 -c 'import version; print(version.NUMBER)'")).finished.output]
    for number in range(11, 15):
        ws.open("version.py", f"NUMBER = {number}\n")
        seen.append((await bench.run("python3 -c 'import version; print(version.NUMBER)'")).finished.output)
    assert seen == [f"{number}\n" for number in range(10, 15)]
    assert (await bench.run("ls __pycache__")).finished.output, "nothing was compiled, so nothing was tried"


FORMATTER = """
import pathlib
for path in sorted(pathlib.Path(".").rglob("*.py")):
    data = path.read_bytes()
    path.write_bytes(b"".join(line.rstrip() + line[len(line.rstrip(b"\\r\\n")):] for line in data.splitlines(True)))
"""


@pytest.mark.slow
async def test_a_formatter_leaves_a_changeset_that_undoes_cleanly(bench: Bench) -> None:
    ws = bench.desk
    ws.write("pkg/a.py", "a = 1   \nb = 2\n")
    ws.write("pkg/crlf.py", b"c = 3  \r\nd = 4\r\n")
    ws.write("pkg/clean.py", "e = 5\n")
    ws.open("pkg/typed.py", "f = 6  \n", 3)
    ws.stage("pkg/staged.py", "g = 7  \n")
    before = ws.staging.changeset
    result = await bench.run(f"python3 -c {shlex.quote(FORMATTER)}")
    assert result.finished.output == ""
    assert ws.changes == {
        "pkg/staged.py": "g = 7\n",
        "pkg/a.py": "a = 1\nb = 2\n",
        "pkg/crlf.py": "c = 3\r\nd = 4\r\n",
        "pkg/typed.py": "f = 6\n",
    }
    assert "-a = 1   \n+a = 1\n" in ws.staging.changeset.diff(ws.view.roots.relative)
    ws.staging.undo()
    assert ws.staging.changeset == before
    assert (await bench.run("cat pkg/a.py")).finished.output == "a = 1   \nb = 2\n"


@pytest.mark.slow
async def test_typing_while_a_formatter_runs_is_merged(bench: Bench) -> None:
    ws = bench.desk
    path = ws.write("a.py", "one  \ntwo\nthree\n\nfour  \n")
    ws.open("a.py", "one  \ntwo\nthree\n\nfour  \n", 5)

    def typing(stream: str, text: str) -> None:
        if "started" in text:
            ws.type("a.py", "three", "three and more")

    script = "echo started; sleep 0.2; sed -i 's/ *$//' a.py"
    await bench.shell.run(Command(script, str(ws.root)), typing)
    now = ws.buffers.documents[path]
    assert now.version == 6
    rebased = ws.staging.changeset.rebase({path: Current(now.text, now.version)})
    assert rebased.changeset.files[0].text == "one\ntwo\nthree and more\n\nfour\n"
    assert rebased.conflicts == ()


@pytest.mark.slow
async def test_ignored_output_is_there_for_the_next_command_and_never_proposed(bench: Bench) -> None:
    ws = bench.desk
    ws.write(".gitignore", "build/\n*.o\n")
    ws.write("build/old.o", "old\n")
    result = await bench.run("mkdir -p build; echo made > build/new.o; echo o > main.o")
    assert (result.staged, result.left_out) == ((), ())
    assert (await bench.run("cat build/new.o main.o")).finished.output == "made\no\n"
    assert (ws.root / "build/old.o").read_text() == "old\n"
    assert not (ws.root / "main.o").exists()


@pytest.mark.slow
async def test_git_can_look_and_cannot_touch(bench: Bench) -> None:
    ws = bench.desk
    ws.write("a.py", "a = 1\n")
    git = "git -c user.name=n -c user.email=e@example.org -c init.defaultBranch=main"
    make_repository(ws.root, f"{git} init -q . && {git} add a.py && {git} commit -qm first")
    ws.open("a.py", "a = 2\n")
    ws.stage("b.py", "b = 1\n")
    before = frozen(ws.root)
    result = await bench.run("git status --short; git log --format=%s; git diff --stat | tail -1")
    assert result.finished.output == " M a.py\n?? b.py\nfirst\n 1 file changed, 1 insertion(+), 1 deletion(-)\n"
    await bench.run(f"{git} commit -qam second; git stash; rm -rf .git")
    assert frozen(ws.root) == before


def make_repository(root: Path, script: str) -> None:
    subprocess.run(["bash", "-c", script], cwd=root, check=True, capture_output=True)
