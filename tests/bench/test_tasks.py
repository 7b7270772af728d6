"""The tasks that a program makes, and the bench that gives them to agents: without a model, a peer or a network."""

from __future__ import annotations

import ast
import json
import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest

from tests.bench.agents import turns
from tests.bench.agents_peers import named_files
from tests.bench.agents_proxy import Count, CountingProxy, counted_in, with_usage
from tests.bench.agents_results import Ended, Result, append, cause_of, changed_files, read, report
from tests.bench.agents_runs import Limit, run
from tests.bench.tasks import KINDS, SIZES, Task, draw, lay, load, save, solved
from tests.bench.tasks.addition_forms import FORMS as ADDITIONS
from tests.bench.tasks.addition_forms import Form
from tests.bench.tasks.additions import addition_task, answered, filled
from tests.bench.tasks.faults import fault_task
from tests.bench.tasks.mutations import mutations
from tests.bench.tasks.pieces import joined, needed, units, whole
from tests.bench.tasks.renames import FORMS as RENAMES
from tests.bench.tasks.renames import project, rename_task
from tests.bench.tasks.sources import Source, public_sources
from tests.bench.tasks.task import unittest_command
from tests.examples import volume

CODE = '''
import math

LIMIT = 3


def near(first, second):
    """Whether 1 and 2 are near: first < second."""
    if not first or first >= second:
        return False
    found = []
    for step in range(LIMIT):
        found.append(first + step)
    return min(found[1:]) <= second - 1


def unrelated():
    return math.pi
'''


def task_of(files: dict[str, str], **values: str) -> Task:
    task = Task("t-1", "fault", "small", "Fix it.", files, ("test_a.py",), unittest_command(["test_a.py"]), "a.py", "")
    return replace(task, **values)  # type: ignore[arg-type]


BROKEN = task_of(
    {
        "a.py": "def one():\n    return 2\n",
        "test_a.py": "import unittest\nfrom a import one\n\n\nclass OneTest(unittest.TestCase):\n"
        "    def test_one(self):\n        self.assertEqual(one(), 1)\n",
    }
)


def test_faults_change_one_place_and_compile() -> None:
    found = mutations(CODE, "near")
    texts = [fault.applied(CODE) for fault in found]
    assert len(set(texts)) == len(texts) > 12
    assert {"comparison", "boolean operator", "dropped not", "opposite", "slice bound", "missing statement"} <= {
        fault.sort for fault in found
    }
    for text in texts:
        ast.parse(text)
        assert "Whether 1 and 2 are near: first < second." in text and "return math.pi" in text


def test_a_function_is_taken_out_with_what_it_needs_only() -> None:
    assert joined(needed(CODE, ["near"])).startswith("LIMIT = 3\n\n\ndef near")
    assert "math" not in joined(needed(CODE, ["near"]))
    assert joined(needed(CODE, ["unrelated"])).startswith("import math")


def test_what_would_hide_a_function_behind_c_is_left_out() -> None:
    text = '"""Doc."""\n__all__ = ["f"]\ndef f(): pass\ntry:\n    from _c import f\nexcept ImportError:\n    pass\n'
    assert whole(text).strip() == "def f(): pass"
    assert [unit.binds for unit in units(text)] == [frozenset({"f"})]


@pytest.mark.slow
def test_a_fault_is_seen_by_its_test_and_the_original_is_not(tmp_path: Path) -> None:
    calls = ("near(1, 2)", "near(1, 9)", "near(0, 2)", "near(3, 1)", "object()")
    source = Source({"a.py": CODE.lstrip()}, "a.py", "a", "near", calls)
    task = fault_task(random.Random(1), "x", "small", source)
    assert task is not None and task.cause
    lay(task, tmp_path)
    assert not solved(task, tmp_path)
    (tmp_path / "a.py").write_text(source.files["a.py"])
    assert solved(task, tmp_path)
    assert "object" not in task.files["test_a.py"]


@pytest.mark.slow
def test_the_default_tasks() -> None:
    count = max(15, volume(60))
    tasks = draw(3, count)
    kinds, sizes = Counter(task.kind for task in tasks), Counter(task.size for task in tasks)
    assert len({task.id for task in tasks}) == len(tasks) == count
    assert set(kinds) == set(KINDS) and set(sizes) == set(SIZES)
    least = {kind: count * share // 60 for kind, share in (("fault", 30), ("addition", 12), ("rename", 8))}
    assert min(sizes.values()) >= count // 4 and all(kinds[kind] >= number for kind, number in least.items())
    for task in tasks:
        for text in task.files.values():
            assert not re.search(r"/(?:wor" + r"k|ro" + r"ot|home)/\w", text), task.id
        tests = "".join(task.files[name] for name in task.tests)
        assert not re.search(r"0x[0-9a-f]{8}", tests) and "Mock" not in tests
        assert "unittest" in " ".join(task.check) and {task.place, *task.also} <= set(task.files)
        assert len(task.also) == (2 if task.kind == "rename" else 0)


@pytest.mark.slow
def test_drawn_tasks_hang_on_the_seed_alone_and_are_not_solved_yet(tmp_path: Path) -> None:
    tasks = draw(5, 6)
    assert draw(5, 6) == tasks and draw(6, 6) != tasks
    assert draw(5, 3) == tasks[:3]
    for task in tasks:
        folder = save(task, tmp_path)
        assert load(folder) == task and not solved(task, folder)


def test_kinds_and_sizes_can_be_chosen() -> None:
    tasks = draw(1, 4, kinds=("rename",), sizes=("small",))
    assert [(task.kind, task.size) for task in tasks] == [("rename", "small")] * 4
    assert len({task.id for task in tasks}) == 4


@pytest.mark.slow
@pytest.mark.parametrize("form", ADDITIONS, ids=lambda form: str(form.name))
def test_what_is_to_be_added_can_be(form: Form, tmp_path: Path) -> None:
    number = ADDITIONS.index(form)
    task = addition_task(random.Random(1), "x", "small", number)
    lay(task, tmp_path)
    assert not solved(task, tmp_path)
    text = task.files[task.place]
    drawn = next(each for each in form.choices if filled(form.code, each).strip() == text.strip() or len(each) == 1)
    answers = [answered(form, each, text) for each in (drawn, *form.choices)]
    good = []
    for answer in answers:
        (tmp_path / task.place).write_text(answer)
        good.append(solved(task, tmp_path))
    assert any(good)


@pytest.mark.slow
@pytest.mark.parametrize("form", RENAMES, ids=lambda form: str(form.sort))
def test_renaming_everywhere_solves_it_and_half_of_it_does_not(form: object, tmp_path: Path) -> None:
    rename = next(each for each in RENAMES if each is form)
    old, new = rename.names[0]
    (before, test), (after, _) = project(rename, old, new), project(rename, new, new)
    task = task_of({**before, "test_a.py": test})
    for files, good in (
        (before, False),
        ({**before, rename.defines[0]: after[rename.defines[0]]}, False),
        (after, True),
    ):
        lay(replace(task, files={**files, "test_a.py": test}), tmp_path)
        assert solved(task, tmp_path) is good


@pytest.mark.slow
@pytest.mark.parametrize("size", ["medium", "large"])
def test_the_old_name_stands_only_where_it_is_to_be_renamed(size: str, tmp_path: Path) -> None:
    for number in range(len(RENAMES)):
        task = rename_task(random.Random(number), "x", size, number)
        found = re.fullmatch(r"\w+ (\w+) is to be called (\w+)", task.cause)
        assert found
        lay(task, tmp_path)
        for name, text in task.files.items():
            if name not in task.tests:
                (tmp_path / name).write_text(re.sub(rf"\b{found[1]}\b", found[2], text))
        assert solved(task, tmp_path)


@pytest.mark.slow
def test_changed_tests_do_not_help(tmp_path: Path) -> None:
    lay(BROKEN, tmp_path)
    (tmp_path / "test_a.py").write_text("")
    assert not solved(BROKEN, tmp_path)
    (tmp_path / "a.py").write_text("def one():\n    return 1\n")
    assert solved(BROKEN, tmp_path)


def test_public_code_is_used_by_the_examples_in_its_docstrings(tmp_path: Path) -> None:
    package = tmp_path / "nice"
    package.mkdir()
    (package / "__init__.py").write_text("from nice.sums import add\n")
    examples = "\n".join(f"    >>> add({n}, 1)\n    {n + 1}" for n in range(3))
    (package / "sums.py").write_text(f'def add(a, b):\n    """Adds.\n\n{examples}\n    """\n    return a + b\n')
    (found,) = public_sources(tmp_path)
    assert (found.place, found.module, found.function) == ("package/sums.py", "package.sums", "add")
    assert found.files["package/__init__.py"] == "from package.sums import add\n"
    assert found.calls == ("add(0, 1)", "add(1, 1)", "add(2, 1)")


USAGE = {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 40}}


class _Model(BaseHTTPRequestHandler):
    """A model server that answers with three pieces, and with the usage when it was asked for it."""

    def do_GET(self) -> None:
        self._send(json.dumps({"path": self.path}).encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not asked.get("stream"):
            self._send(json.dumps({"choices": [], "usage": USAGE}).encode())
            return
        pieces = [{"choices": [{"delta": {"content": text}}]} for text in "abc"]
        told = [{"choices": [], "usage": USAGE}] if asked.get("stream_options", {}).get("include_usage") else []
        lines = [*(json.dumps(piece) for piece in [*pieces, *told]), "[DONE]"]
        self._send("".join(f"data: {line}\n\n" for line in lines).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name in the base class
        pass

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def counting() -> Iterator[CountingProxy]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Model)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        with CountingProxy(f"http://127.0.0.1:{server.server_address[1]}/v1") as proxy:
            yield proxy
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_the_proxy_counts_and_passes_on() -> None:
    with counting() as proxy, httpx.Client(base_url=proxy.url, trust_env=False) as client:
        assert client.get("/props?x=1").json() == {"path": "/props?x=1"}
        assert proxy.take() == Count()
        assert client.post("/v1/chat/completions", json={"messages": []}).json()["usage"] == USAGE
        text = client.post("/v1/chat/completions", json={"stream": True}).text
        assert [line[6:] for line in text.splitlines() if line][-1] == "[DONE]" and text.count("delta") == 3
        client.post("/tokenize", json={"content": "x"})
        count = proxy.take()
        assert replace(count, seconds=0.0) == Count(2, 100, 80, 14)
        assert proxy.take() == Count()


def test_a_call_whose_client_is_gone_is_cut_off_and_counted_once() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        CountingProxy(f"http://127.0.0.1:{silent.getsockname()[1]}") as proxy,
        socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2]))) as client,
    ):
        client.sendall(b"POST /v1/chat/completions HTTP/1.0\r\ncontent-length: 2\r\n\r\n{}")
        upstream, _ = silent.accept()
        with upstream:
            upstream.recv(1)
            assert replace(proxy.take(), seconds=0.0) == Count(requests=1)
            assert proxy.take() == Count()


def test_only_streams_are_asked_for_their_usage() -> None:
    assert with_usage(b'{"a": 1}') == b'{"a": 1}' and with_usage(b"no json") == b"no json"
    asked = json.loads(with_usage(b'{"stream": true, "stream_options": {"x": 1}}'))
    assert asked["stream_options"] == {"x": 1, "include_usage": True}


def test_what_answers_tell_is_counted() -> None:
    native = {"content": "", "tokens_evaluated": 30, "timings": {"prompt_n": 10, "predicted_n": 5}}
    assert counted_in(json.dumps(native).encode(), 1.0) == Count(1, 30, 20, 5, 1.0)
    both = {"usage": {"prompt_tokens": 9, "completion_tokens": 2}, "timings": {"prompt_n": 4, "cache_n": 5}}
    assert counted_in(f"data: {json.dumps(both)}\n\ndata: [DONE]\n".encode(), 0.0) == Count(1, 9, 5, 2)
    assert counted_in(b'data: {"choices": []}\n\ndata: {"choices"', 0.0) == Count(1, 0, 0, 1)
    assert counted_in(b"", 2.0) == Count(requests=1, seconds=2.0)
    asked = json.dumps({"messages": [{"role": "user", "content": "four" * 10}, {"role": "user", "content": None}]})
    assert counted_in(b"", 2.0, asked.encode()) == Count(requests=1, prompt_tokens=10, seconds=2.0)
    assert counted_in(b": wait\n\n", 2.0, asked.encode()) == Count(requests=1, prompt_tokens=10, seconds=2.0)
    assert counted_in(b'{"error": "too long"}', 2.0, asked.encode()) == Count(requests=1, seconds=2.0)


@dataclass(frozen=True)
class Scripted:
    """An agent that writes one text, without a model."""

    name: str
    writes: str

    def work(self, task: Task, project: Path, limit: Limit) -> Ended:
        (project / task.place).write_text(self.writes)
        return Ended("completed", True, 1.0)


@pytest.mark.slow
def test_agents_take_turns_and_what_is_done_is_left_out(tmp_path: Path) -> None:
    agents = [Scripted("good", "def one():\n    return 1\n"), Scripted("bad", "def one(:\n")]
    tasks = [BROKEN, replace(BROKEN, id="t-2")]
    out = tmp_path / "out.jsonl"
    with counting() as proxy:
        for result in turns(tasks, agents, proxy, rounds=1, seconds=9):
            append(out, result)
        results = read(out)
        assert [(result.task, result.agent) for result in results] == [
            ("t-1", "good"), ("t-1", "bad"), ("t-2", "bad"), ("t-2", "good"),
        ]  # fmt: skip
        (last,) = turns(tasks, agents, proxy, rounds=1, seconds=9, done=results[:3])
        assert last == results[3]
    assert [result.cause for result in results] == ["", "broke syntax", "broke syntax", ""]
    told = report(results)
    assert "| good | 2/2 | 0 | 0 |" in told and "| bad | 0/2 | 2 | 0 |" in told and "broke syntax" in told


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    result = Result(1, "t", "fault", "small", "ours", False, False, "failed", "crash", "", 1, 0, 0, 0, 0, 0, ("a.py",))
    append(out, result)
    out.write_text(out.read_text() + '{"round": 1, "ta')
    assert read(out) == [result] and read(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("changes", "ended", "cause"),
    [
        ({}, Ended("completed", True, 1), "nothing changed"),
        ({}, Ended("stopped", False, 1, refused=True), "refused/format"),
        ({"test_a.py": ""}, Ended("completed", True, 1), "tests changed only"),
        ({"a.py": "def one(:"}, Ended("completed", True, 1), "broke syntax"),
        ({"a.py": "one = 1"}, Ended("completed", True, 1), "wrong edit: tests still fail"),
        ({"a.py": "one = 1"}, Ended("", False, 1, late=True), "time limit"),
        ({}, Ended("", False, 1, crashed=True), "crash"),
    ],
)
def test_causes(changes: dict[str, str], ended: Ended, cause: str, tmp_path: Path) -> None:
    lay(BROKEN, tmp_path)
    for name, text in changes.items():
        (tmp_path / name).write_text(text)
    (tmp_path / ".aider.tags").write_text("")
    changed = changed_files(BROKEN, tmp_path)
    assert set(changed) == set(changes)
    assert cause_of(BROKEN, changed, ended) == cause


def test_the_files_that_words_name() -> None:
    assert named_files(replace(BROKEN, words="test_a.py fails.")) == ["test_a.py"]
    assert named_files(replace(BROKEN, words="修复 a.py 里的错误")) == ["a.py"]
    assert named_files(replace(BROKEN, words="请把a.py修好，schema.python")) == ["a.py"]


def test_a_process_is_ended_at_its_limit_with_what_it_started(tmp_path: Path) -> None:
    ended = run(["sh", "-c", "echo begun; sleep 60 & sleep 60"], tmp_path, {}, Limit(0.1))
    assert ended.late and "begun" in ended.output
