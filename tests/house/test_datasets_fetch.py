"""Downloads into the data folder: cached, resumed, checked, clear offline. A local server plays the source."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pooch
import pytest

from pqlab.data import DataUnavailableError, fetch
from pqlab.data.fetch import Remote

CONTENT = bytes(range(256)) * 5000  # more than one chunk
PATH = "folder/file.bin"
NOBODY = "http://127.0.0.1:1/file.bin"  # nobody listens at port 1


class Source(ThreadingHTTPServer):
    """Serves `content` at every path; `breaks` holds after how many bytes each coming answer is cut."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.etag, self.ranges, self.wrong_place = CONTENT, '"one"', True, False
        self.breaks: list[int] = []
        self.gate: threading.Event | None = None
        self.seen: list[tuple[str | None, int]] = []  # the range asked for and the status given

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/file.bin"

    def handle_error(self, *_: Any) -> None:
        pass


class Handler(BaseHTTPRequestHandler):
    server: Source

    def do_GET(self) -> None:
        asked, start, status = self.headers.get("Range"), 0, 200
        if asked and self.server.ranges and self.headers.get("If-Range") == self.server.etag:
            start, status = int(asked.removeprefix("bytes=").removesuffix("-")), 206
            if start >= len(self.server.content):
                status = 416
        if self.path == "/missing":
            status = 404
        self.server.seen.append((asked, status))
        body = self.server.content[start:] if status < 400 else b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        if self.server.etag:
            self.send_header("ETag", self.server.etag)
        if status == 206:
            place = start + 1 if self.server.wrong_place else start
            self.send_header(
                "Content-Range", f"bytes {place}-{len(self.server.content) - 1}/{len(self.server.content)}"
            )
        self.end_headers()
        if self.server.gate is not None:  # half an answer, until somebody opens
            self.wfile.write(body[: len(body) // 2])
            body = body[len(body) // 2 :]
            self.server.gate.wait(10.0)
        self.wfile.write(body[: self.server.breaks.pop(0)] if self.server.breaks else body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def source() -> Iterator[Source]:
    server = Source()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PQ_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("no_proxy", "*")
    return tmp_path / "data"


def test_the_data_folder_is_the_users_choice_or_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQ_DATA", "~/somewhere")
    assert fetch.data_folder() == Path("~/somewhere").expanduser()
    monkeypatch.delenv("PQ_DATA")
    assert fetch.data_folder() == Path(pooch.os_cache("pq"))


def test_a_file_is_downloaded_once(source: Source, folder: Path) -> None:
    path = fetch.fetch(Remote(source.address, PATH))
    assert path == folder / PATH
    assert path.read_bytes() == CONTENT
    assert fetch.fetch(Remote(source.address, PATH)) == path
    assert source.seen == [(None, 200)]
    assert sorted(p.name for p in path.parent.iterdir()) == ["file.bin"]
    assert json.loads((folder / fetch.REGISTRY).read_text()) == {PATH: hashlib.sha256(CONTENT).hexdigest()}


def test_offline_nothing_is_asked_for(source: Source, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PQ_OFFLINE", "1")
    with pytest.raises(DataUnavailableError, match="put it at") as error:
        fetch.fetch(Remote(source.address, PATH))
    assert str(folder / PATH) in str(error.value) and source.address in str(error.value)
    assert source.seen == []
    (folder / PATH).parent.mkdir(parents=True)
    (folder / PATH).write_bytes(b"by hand")
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == b"by hand"


def test_a_file_that_is_there_is_used_without_a_word(folder: Path) -> None:
    (folder / PATH).parent.mkdir(parents=True)
    (folder / PATH).write_bytes(b"by hand")
    assert fetch.fetch(Remote(NOBODY, PATH)).read_bytes() == b"by hand"
    assert not (folder / fetch.REGISTRY).exists()


def test_a_broken_download_goes_on_where_it_stopped(source: Source, folder: Path) -> None:
    source.breaks = [300_000, 500_000]
    for have in (300_000, 800_000):
        with pytest.raises(DataUnavailableError, match="goes on at the next call"):
            fetch.fetch(Remote(source.address, PATH))
        assert (folder / (PATH + ".part")).stat().st_size == have
        assert not (folder / PATH).exists()
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == CONTENT
    assert source.seen == [(None, 200), ("bytes=300000-", 206), ("bytes=800000-", 206)]
    assert sorted(p.name for p in (folder / PATH).parent.iterdir()) == ["file.bin"]


def test_a_file_that_changed_meanwhile_is_not_patched_together(source: Source, folder: Path) -> None:
    source.breaks = [300_000]
    with pytest.raises(DataUnavailableError):
        fetch.fetch(Remote(source.address, PATH))
    source.content, source.etag = CONTENT[::-1], '"two"'
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == CONTENT[::-1]
    assert source.seen[1] == ("bytes=300000-", 200)


@pytest.mark.parametrize("etag", ["", 'W/"weak"'])
def test_without_a_strong_tag_it_starts_anew(source: Source, folder: Path, etag: str) -> None:
    source.etag, source.breaks = etag, [300_000]
    with pytest.raises(DataUnavailableError):
        fetch.fetch(Remote(source.address, PATH))
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == CONTENT
    assert source.seen == [(None, 200), (None, 200)]


def test_a_server_without_ranges_starts_anew(source: Source, folder: Path) -> None:
    source.ranges, source.breaks = False, [300_000]
    with pytest.raises(DataUnavailableError):
        fetch.fetch(Remote(source.address, PATH))
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == CONTENT
    assert source.seen == [(None, 200), ("bytes=300000-", 200)]


def test_a_partial_file_as_long_as_the_whole_is_fetched_anew(source: Source, folder: Path) -> None:
    part = folder / (PATH + ".part")
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * len(CONTENT))
    part.with_name(part.name + ".etag").write_text(source.etag)
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == CONTENT
    assert [status for _, status in source.seen] == [416, 200]


def test_a_server_that_resumes_elsewhere_is_not_believed(source: Source, folder: Path) -> None:
    source.breaks, source.wrong_place = [300_000], True
    for _ in range(2):
        with pytest.raises(DataUnavailableError):
            fetch.fetch(Remote(source.address, PATH))
    assert (folder / (PATH + ".part")).stat().st_size == 300_000


def test_damage_is_an_error_and_the_message_tells_the_way_out(source: Source, folder: Path) -> None:
    path = fetch.fetch(Remote(source.address, PATH))
    path.write_bytes(b"damaged")
    for load in (lambda: fetch.fetch(Remote(source.address, PATH)), lambda: fetch.local(PATH)):
        with pytest.raises(ValueError, match=r"Remove the file to have it downloaded again.*" + PATH):
            load()
    path.unlink()
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == CONTENT


def test_a_source_that_changed_is_an_error_until_it_is_accepted(source: Source, folder: Path) -> None:
    fetch.fetch(Remote(source.address, PATH)).unlink()
    source.content, source.etag = b"another edition", '"two"'
    with pytest.raises(ValueError, match=f"no longer has the file.*{PATH}"):
        fetch.fetch(Remote(source.address, PATH))
    assert not (folder / PATH).exists()
    (folder / fetch.REGISTRY).write_text("{}")
    assert fetch.fetch(Remote(source.address, PATH)).read_bytes() == b"another edition"


@pytest.mark.parametrize("place", ["nobody listens", "not found"])
def test_offline_names_file_address_and_place(source: Source, folder: Path, place: str) -> None:
    missing = source.address.replace("file.bin", "missing")
    address = missing if place == "not found" else NOBODY
    with pytest.raises(DataUnavailableError) as error:
        fetch.fetch(Remote(address, PATH))
    for part in (PATH, address, str(folder / PATH), "PQ_DATA"):
        assert part in str(error.value)
    assert not (folder / fetch.REGISTRY).exists()


def test_several_files_share_one_registry(source: Source, folder: Path) -> None:
    fetch.fetch(Remote(source.address, "b"))
    fetch.fetch(Remote(source.address, "a"))
    assert list(json.loads((folder / fetch.REGISTRY).read_text())) == ["a", "b"]


def two_at_once(source: Source, folder: Path) -> list[bytes | str]:
    """What two downloads of one file give of which the second begins while the first has half of it."""
    source.gate, found = threading.Event(), []

    def run() -> None:
        try:
            found.append(fetch.fetch(Remote(source.address, PATH)).read_bytes())
        except (OSError, ValueError) as error:
            found.append(type(error).__name__)

    threads = [threading.Thread(target=run) for _ in "ab"]
    for thread in threads:
        thread.start()
        while not source.seen:
            thread.join(0.01)
    threads[1].join(0.5)
    source.gate.set()
    for thread in threads:
        thread.join()
    return found


def test_two_downloads_of_one_file_do_not_share_a_partial_one(
    source: Source, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert two_at_once(source, folder) == [CONTENT, CONTENT]
    assert source.seen == [(None, 200)]
    (folder / PATH).unlink()
    monkeypatch.setattr(fetch, "_alone", lambda lock: contextlib.nullcontext())
    source.seen.clear()
    two_at_once(source, folder)
    assert len(source.seen) == 2  # what was there before: both write
