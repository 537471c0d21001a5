"""Files that are downloaded on request and kept in the data folder.

The data folder is the value of the environment variable `PQ_DATA` or, without it, the user's cache folder for `pq`. A
file that already lies there under its name is used as it is, so a file can also be fetched by hand and put there.

A download first grows as `<name>.part`. If it breaks off, the next call goes on from there where the server allows it
and the file has not changed meanwhile (an HTTP range request bound to the file's entity tag), and starts anew
otherwise.

The sources publish no checksums. The SHA-256 of each file is therefore written into `checksums.json` in the data folder
when the file is first downloaded, and from then on the file must keep it: damage, or a file that the source changed, is
an error and not another data set. Remove the file's entry to accept a new version. Files put there by hand have no
entry.

While the environment variable `PQ_OFFLINE` is set and not empty nothing is downloaded: a file that is not there is an
error at once.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

CHUNK = 1 << 20
TIMEOUT = 60.0  # seconds without a byte
REGISTRY = "checksums.json"


class DataUnavailableError(OSError):
    """A file is not in the data folder and cannot be downloaded; the text names file, address and where to put it."""


@dataclass(frozen=True)
class Remote:
    """A file to be had: its address, and its path inside the data folder."""

    address: str
    path: str


def _pooch() -> Any:
    """The downloader, imported when a file is asked for: inside a notebook its progress bar warns on import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pooch
    return pooch


def data_folder() -> Path:
    """The folder in which files are kept: `PQ_DATA`, or the user's cache folder for `pq`."""
    chosen = os.environ.get("PQ_DATA")
    return Path(chosen).expanduser() if chosen else Path(_pooch().os_cache("pq"))


def local(path: str) -> Path | None:
    """The file at this path inside the data folder, if it is there.

    Raises
    ------
    ValueError : if its checksum is not the one recorded at its first download.
    """
    file = data_folder() / path
    if not file.is_file():
        return None
    known = _registry().get(path)
    if known is not None and _pooch().file_hash(str(file)) != known:
        raise ValueError(
            f"{file} is not as it was downloaded: its SHA-256 differs from that in {data_folder() / REGISTRY}. "
            f"Remove the file to have it downloaded again, or remove its entry {path!r} there to use it as it is"
        )
    return file


def fetch(remote: Remote) -> Path:
    """The file in the data folder, downloaded if it is not there yet.

    Raises
    ------
    DataUnavailableError : if it is not there and the download fails.
    ValueError : if its checksum is not the one recorded at its first download.
    """
    present = local(remote.path)
    if present is not None:
        return present
    target = data_folder() / remote.path
    known = _registry().get(remote.path)
    if os.environ.get("PQ_OFFLINE"):
        raise DataUnavailableError(
            f"{remote.path} is not in the data folder, and nothing is downloaded unless asked for (`pq reproduce` asks "
            f"by --download, other programs unless PQ_OFFLINE is set). Download {remote.address} and put it at "
            f"{target}; the environment variable PQ_DATA sets the data folder"
        )
    try:
        with _alone(target.with_name(target.name + ".lock")):
            if (meanwhile := local(remote.path)) is not None:
                return meanwhile
            _pooch().retrieve(
                remote.address,
                known,
                fname=target.name,
                path=target.parent,
                downloader=_Resuming(target.with_name(target.name + ".part")),
            )
    except ValueError as error:
        raise ValueError(
            f"{remote.address} no longer has the file that was downloaded first: its SHA-256 differs from that in "
            f"{data_folder() / REGISTRY}. Remove the entry {remote.path!r} there to accept the new file"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise DataUnavailableError(
            f"{remote.path} is not in the data folder and could not be downloaded ({type(error).__name__}: {error}). "
            f"Download {remote.address} elsewhere and put it at {target}; "
            f"the environment variable PQ_DATA sets the data folder. "
            f"A download that broke off goes on at the next call"
        ) from error
    if known is None:
        _record(remote.path, _pooch().file_hash(str(target)))
    return target


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """One download of a file at a time, of all threads and processes: they would write into one partial file."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with open(lock, "w") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
        lock.unlink(missing_ok=True)


def _registry() -> dict[str, str]:
    file = data_folder() / REGISTRY
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


def _record(path: str, checksum: str) -> None:
    file = data_folder() / REGISTRY
    content = json.dumps({**_registry(), path: checksum}, indent=2, sort_keys=True) + "\n"
    draft = file.with_name(f"{REGISTRY}.{os.getpid()}")
    draft.write_text(content, encoding="utf-8")
    draft.replace(file)


class _Resuming:
    """A downloader for pooch that lets a partial file grow over several calls, then hands it over whole."""

    def __init__(self, part: Path) -> None:
        self.part = part
        self.tag = part.with_name(part.name + ".etag")

    def __call__(self, url: str, output_file: Any, _: Any) -> None:
        try:
            self._grow(url)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code != 416:  # the server has nothing behind what is there: the partial file is of no use
                raise
            self.part.unlink()
            self._grow(url)
        self.part.replace(output_file)
        self.tag.unlink(missing_ok=True)

    def _grow(self, url: str) -> None:
        have = self.part.stat().st_size if self.part.is_file() and self.tag.is_file() else 0
        headers = {"Accept-Encoding": "identity", "User-Agent": "pq"}
        if have:
            headers |= {"Range": f"bytes={have}-", "If-Range": self.tag.read_text(encoding="ascii")}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
            resumed = response.status == 206
            if resumed and not response.headers.get("Content-Range", "").startswith(f"bytes {have}-"):
                raise http.client.HTTPException("the server resumed at another place than asked")
            self._remember(response.headers.get("ETag"))
            with open(self.part, "ab" if resumed else "wb") as file:
                self._copy(response, file)
            length = response.headers.get("Content-Length")
        whole = (have if resumed else 0) + int(length) if length is not None else self.part.stat().st_size
        if self.part.stat().st_size != whole:
            raise http.client.IncompleteRead(b"", whole - self.part.stat().st_size)

    def _remember(self, tag: str | None) -> None:
        if tag is None or tag.startswith("W/"):  # a weak tag does not promise the same bytes
            self.tag.unlink(missing_ok=True)
        else:
            self.tag.write_text(tag, encoding="ascii")

    @staticmethod
    def _copy(source: BinaryIO, target: BinaryIO) -> None:
        while chunk := source.read(CHUNK):
            target.write(chunk)
