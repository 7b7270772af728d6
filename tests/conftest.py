"""What all tests share: folders of their own, no state of this user, and a word about what could not be tested."""

from __future__ import annotations

import os
import re
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest
from hypothesis import settings

from codeagent_lsp.llm.providers.embedded import engine_installed
from codeagent_lsp.llm.weights import installed
from tests.examples import FEW, letters_known
from tests.garbage import uncollected
from tests.reports import run_in_worker
from tests.tables import as_one_test

KEPT_OUT = (
    "CODEAGENT_BASE_URL",
    "CODEAGENT_MODEL",
    "CODEAGENT_API_KEY",
    "CODEAGENT_STATE_DIR",
    "CODEAGENT_CONFIG_DIR",
    "TRACE_SANITIZE",
    "TAVILY_API_KEY",
)

# What measures, waits for a time, or asks real language servers, which say old things where they have no time; tests
# with the mark `model` besides, whose model takes all processors.
ALONE = tuple(
    str(Path(__file__).parent / name)
    for name in (
        "language_servers/test_real_servers.py",
        "records/test_speed.py",
        "server/test_real_servers.py",
        "server/wire/test_channel.py",
        "server/wire/test_lifecycle.py",
        "workspace/edits/test_match_refusals.py",
    )
)

# Nearly every test of these starts a program, waits for one, looks at all of Unicode or at many generated texts.
SLOW = tuple(
    str(Path(__file__).parent / name)
    for name in (
        "clients/emacs",
        "clients/neovim",
        "environments/test_container_box.py",
        "index/test_host.py",
        "index/test_semantic.py",
        "records/test_stream.py",
        "server/test_features_prompt.py",
        "server/test_features_queue.py",
        "server/test_features_rewind.py",
        "session/attempts/test_attempts.py",
        "session/hooks/test_hooks.py",
        "session/test_background.py",
        "session/test_background_output.py",
        "session/solving/test_name_changes.py",
        "language_servers/test_hostile_connection.py",
        "language_servers/test_hostile_servers.py",
        "language_servers/test_real_servers.py",
        "mcp_server/test_sampling.py",
        "shadow/test_overlay.py",
        "shadow/test_process.py",
        "shadow/test_watchdog.py",
        "shadow/test_workspace.py",
        "lsp_client/test_connection.py",
        "terminal/test_index.py",
        "tools/code/test_edit_properties.py",
        "tools/code/test_reference_properties.py",
        "tools/git/test_diff.py",
        "tools/mcp/test_clock.py",
        "tools/mcp/test_oauth_callback.py",
        "tools/mcp/test_servers.py",
        "tools/mcp/test_websocket.py",
        "tools/permissions/shell/test_executed.py",
        "tools/skills/test_fetching.py",
        "tools/testing/test_generating_tools.py",
        "tools/testing/test_run_tests.py",
        "tools/web/test_fetching.py",
        "workspace/files/test_search.py",
        "workspace/text/test_unseen.py",
    )
)
TIDY = str(Path(__file__).parent / "tidy")
STARTS_A_SERVER = "start"  # the fixture of tests/server
FAST_SECONDS = 0.5
"""The most processor time of a test that is not marked slow; nearly all take a hundredth of it. Those with many
examples, and those that read the whole repository once for all (`tests/tidy`), may take eight times as much.
"""
WHOLLY_SLOW = re.compile(r"^pytestmark = (\[\s*)?pytest\.mark\.slow\b", re.MULTILINE)
"""What all tests of a file are marked with, alone or first in a list; `tests/tidy/test_marks.py` compares."""
QUIET_SECONDS = 0.04
"""What the loop of `_slowness` takes on a quiet machine."""

# The same examples in every run: a change and not chance makes a test fail. Few while somebody waits, many in the slow
# stage (HYPOTHESIS_PROFILE=many), and others with HYPOTHESIS_PROFILE=default.
settings.register_profile("few", derandomize=True, max_examples=FEW, deadline=None)
settings.register_profile("many", derandomize=True, max_examples=100, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "few"))


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """An empty workspace folder."""
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state folder of this test alone, also for the processes it starts."""
    folder = tmp_path / "state"
    monkeypatch.setenv("CODEAGENT_STATE_DIR", str(folder))
    return folder


@pytest.fixture(autouse=True, scope="session")
def _nothing_of_this_user(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test reads or writes the state, or uses the model server, of whoever runs it."""
    with pytest.MonkeyPatch.context() as patch:
        for name in KEPT_OUT:
            patch.delenv(name, raising=False)
        patch.setenv("CODEAGENT_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of proxies: none but their own."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture(autouse=True, scope="session")
def _letters_are_known() -> None:
    """Hypothesis sorts all letters once on a machine, which is not the work of whichever test comes first."""
    letters_known()


@pytest.fixture(autouse=True, scope="session")
def _no_wait_for_the_disk() -> Iterator[None]:
    """What a session writes is in its file at once, but only a power cut could tell whether it is on the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("codeagent_lsp.session.store._sync", os.fstat)  # fails as well for what is no open file
        yield


def pytest_configure() -> None:
    """Check the lists above, and find the programs of the environment beside its Python, activated or not."""
    gone = [name for name in (*ALONE, *SLOW) if not Path(name).exists()]
    assert not gone, f"tests/conftest.py names what is not there: {gone}"
    beside = str(Path(sys.executable).parent)
    if os.environ.get("PATH", "").split(os.pathsep)[0] != beside:
        os.environ["PATH"] = os.pathsep.join([beside, os.environ.get("PATH", os.defpath)])
    if find_spec("sniffio") is None:  # httpcore looks for it before each lock, on the whole path, in vain
        sys.modules["sniffio"] = cast("ModuleType", None)  # an import of it fails as before


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer to take tables apart."""
    parser.addoption("--rows", action="store_true", help="each row of a table is a test of its own")


def leaves_slow_out(config: pytest.Config) -> bool:
    """Return whether `-m` leaves out all that is slow."""
    wanted = str(config.option.markexpr)
    return wanted.startswith("not slow") and " or " not in wanted


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out at once what `-m` would leave out: the inner loop does not wait for the imports of slow files."""
    if not leaves_slow_out(config):
        return None
    if str(collection_path).startswith(SLOW):
        return True
    if collection_path.suffix == ".py" and WHOLLY_SLOW.search(collection_path.read_text(encoding="utf-8")):
        return True
    return None


def pytest_pycollect_makeitem(
    collector: pytest.Collector, name: str, obj: object
) -> pytest.Item | list[pytest.Item] | None:
    """Make one test of a table of fast ones, unless its rows are asked for, and none of a slow one that `-m` leaves
    out: half of all rows are those of slow tests.
    """
    config = collector.config
    if leaves_slow_out(config) and any(mark.name == "slow" for mark in getattr(obj, "pytestmark", ())):
        return []
    if config.option.rows or any("[" in argument for argument in config.args):
        return None
    if str(collector.path).startswith((*ALONE, *SLOW)):
        return None
    return as_one_test(collector, name, obj)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow and what needs the machine for itself, before `-m` looks."""
    for item in items:
        if str(item.path).startswith(SLOW) or STARTS_A_SERVER in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
        if str(item.path).startswith(ALONE) or item.get_closest_marker("model"):
            item.add_marker("alone")


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Send no more about a test than somebody reads."""
    return run_in_worker(item, nextitem)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a fast test that is not fast, by processor time: what other programs do does not count."""
    begun = time.thread_time()
    result = yield
    took = time.thread_time() - begun
    larger = os.environ.get("HYPOTHESIS_PROFILE") == "many" or str(item.path).startswith(TIDY)
    limit = 8 * FAST_SECONDS if larger else FAST_SECONDS
    if not item.get_closest_marker("slow") and took > limit and took > limit * _slowness():
        pytest.fail(f"{took:.1f} s of processor time: mark it slow, or make it quicker", pytrace=False)
    return result


def _slowness() -> float:
    """How much longer the processor takes now than when nobody shares its caches and its core: 1 or more."""
    begun = time.thread_time()
    sum(number % 7 for number in range(1_000_000))
    return max(1.0, (time.thread_time() - begun) / QUIET_SECONDS)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What all tests are made of stays to the end."""
    with uncollected():
        return (yield)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what was left out and why: a skip that nobody sees is a test that nobody has."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.getreports("skipped"):
        if isinstance(report.longrepr, tuple):
            reasons[str(report.longrepr[2]).removeprefix("Skipped: ")] += 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"left out: {count} tests, {reason}", yellow=True)
    if not engine_installed():
        terminalreporter.write_line("embedded model: no engine here, `pip install -e '.[local]'`", yellow=True)
    elif not installed():
        terminalreporter.write_line("embedded model: no weights here, `codeagent-lsp model pull`", yellow=True)
