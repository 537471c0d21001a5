"""Files of records: their bytes as cells of text by RFC 4180, or as a table that declares its types (Section 3.1).

That a file is valid is a public promise of its holder: one that is not is refused whole, with one sentence that is the
same whatever is wrong and wherever. Nothing is guessed from a file: its separator, encoding and compression are told.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import glob
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pq.core.quiet import quiet
from pq.private.columns.declared import running

INVALID = (
    "the file must be valid: readable by its separator, encoding and compression, every quote closed and every row "
    "with as many cells as the header (RFC 4180); with --lines each line is a record of its own instead"
)
LONGEST_CELL = 2**31 - 1  # characters; the csv module's own limit would be an error that tells of the data
OPENERS: dict[str, Callable[[bytes], bytes]] = {
    "none": bytes,
    "gzip": gzip.decompress,
    "bz2": bz2.decompress,
    "xz": lzma.decompress,
}
# Bytes of one record change what others mean, or are line breaks beside the one of files.
SHIFTING = {"punycode", "idna", "unicode-escape", "raw-unicode-escape", "utf-7", "hz", "iso2022_kr"}
SHIFTING |= {f"iso2022_jp{variant}" for variant in ("", "_1", "_2", "_3", "_2004", "_ext")}
SUFFIXES = {".gz": "gzip", ".bz2": "bz2", ".xz": "xz"}
PARQUET_READERS: dict[str, dict[str, Any]] = {  # with what keeps each from reading more than the file of that name
    "polars": {"glob": False, "hive_partitioning": False},
    "duckdb": {"hive_partitioning": False},
    "pyarrow": {"partitioning": None},
}


@dataclass(frozen=True)
class TextFormat:
    """How bytes become rows of cells; all of it public, checked when it is made.

    separator: one character between cells. encoding: a text encoding of Python's. compression: "none", "gzip", "bz2" or
    "xz". by_line: each line is one record, read by itself, and may be odd, in an encoding in which the byte 0x0A ends
    a line; else the file is one of RFC 4180, in an encoding in which bytes mean the same wherever they stand.
    Raises `ValueError` naming the argument.
    """

    separator: str = ","
    encoding: str = "utf-8"
    compression: str = "none"
    by_line: bool = False

    def __post_init__(self) -> None:
        if len(self.separator) != 1 or self.separator in '"\r\n\0':
            raise ValueError(f"separator must be one character that is no quote or line break, got {self.separator!r}")
        try:
            codec = codecs.lookup(self.encoding)
            "".encode(self.encoding)  # some codecs are of bytes, not of text
        except (LookupError, ValueError, TypeError):
            raise ValueError(f"encoding must be one of Python's text encodings, got {self.encoding!r}") from None
        if not self.by_line and codec.name in SHIFTING:
            message = "encoding must be one in which the same bytes mean the same everywhere, unless lines are records"
            raise ValueError(f"{message}: {self.encoding!r} is none")
        if self.by_line and self._newline() != b"\n":
            message = (
                f"encoding must be one in which the byte 0x0A ends a line, for lines to be records: {self.encoding!r}"
            )
            raise ValueError(f"{message} is none")
        if self.compression not in OPENERS:
            raise ValueError(f"compression must be one of {', '.join(OPENERS)}, got {self.compression!r}")

    def column(self, content: bytes, name: str) -> list[str]:
        """The cells of one column, a header row before them; spaces around its name do not count.

        Raises `ValueError`: the header has that name not exactly once, or, with the same words for every fault, the
        content is not valid.

        >>> TextFormat().column(b'note,age\\r\\n"two\\nlines,99",32\\r\\n', "age")
        ['32']
        """
        plain = self._unpacked(content)
        header, *rows = self._lines(plain) if self.by_line else self._rows(self._text(plain))
        names = [cell.strip() for cell in header]
        if names.count(name.strip()) != 1:
            found = "no column" if name.strip() not in names else "more than one column"
            raise ValueError(f"column: the header row has {found} named {name!r}")  # nothing of it: it may be a record
        place = names.index(name.strip())
        return [row[place] if place < len(row) else "" for row in rows]

    def _newline(self) -> bytes:
        """What a line break is, after what some encodings begin a file with; empty if it has none."""
        try:
            one, two = "\n".encode(self.encoding), "\n\n".encode(self.encoding)
        except ValueError:
            return b""
        return two[len(one) :]

    def _unpacked(self, content: bytes) -> bytes:
        try:
            return OPENERS[self.compression](content)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError):
            raise ValueError(INVALID) from None

    def _text(self, content: bytes) -> str:
        """Bytes that mean nothing are replaced, but where a character is several bytes whatever it is: there one byte
        more would change what all that follow mean."""
        errors = "replace" if len(self._newline()) == 1 else "strict"
        try:
            with quiet():  # some codecs warn of what they find
                return content.decode(self.encoding, errors).removeprefix("\ufeff")
        except ValueError:
            raise ValueError(INVALID) from None

    def _rows(self, text: str) -> list[list[str]]:
        """The rows of a valid file. The csv module lets stray quotes pass, so that the grammar is checked before."""
        mark = re.escape(self.separator)
        cell = rf'(?:"(?:[^"]++|"")*+"|[^"\r\n{mark}]*+)'
        if re.fullmatch(rf"{cell}(?:(?:{mark}|\r?\n){cell})*+", text) is None:
            raise ValueError(INVALID)
        rows = [row or [""] for row in self._read(io.StringIO(text, newline=""))] or [[""]]
        if any(len(row) != len(rows[0]) for row in rows):
            raise ValueError(INVALID)
        return rows

    def _lines(self, content: bytes) -> list[list[str]]:
        """Each line by itself, blank ones left out; no cell of one that the csv module refuses.

        Lines are parted before they are decoded: in some encodings a byte changes what all that follow mean.
        """
        header, *lines = [line.rstrip(b"\r") for line in content.split(b"\n")]
        with quiet():
            return [self._line(header), *(self._line(line) for line in lines if line)]

    def _line(self, line: bytes) -> list[str]:
        try:
            return next(self._read([line.decode(self.encoding, errors="replace").removeprefix("\ufeff")]), [])
        except (csv.Error, ValueError):
            return []

    def _read(self, lines: Any) -> Any:
        csv.field_size_limit(LONGEST_CELL)
        return csv.reader(lines, delimiter=self.separator)


def compression_of(path: str) -> str:
    """The compression that a file's name tells.

    >>> compression_of("people.csv.gz"), compression_of("people.csv")
    ('gzip', 'none')
    """
    return SUFFIXES.get(Path(path).suffix.lower(), "none")


def scan_parquet(path: str) -> Any:
    """The Parquet file of that name as a query of the first engine that is installed and reads it.

    Engines take names for patterns of many files, for addresses, and folders for columns; here it is one file and what
    it holds. Raises `OSError` for a file that cannot be opened, `ValueError` for one that none reads, with the same
    words for every fault, and `ImportError` without an engine.
    """
    try:
        path.encode()
    except UnicodeEncodeError:
        raise ValueError("the name of a Parquet file must be UTF-8") from None
    if not Path(path).is_fifo():  # which opening would empty
        Path(path).open("rb").close()
    engines = [name for name in PARQUET_READERS if find_spec(name) is not None]
    if not engines:
        raise ImportError(f"reading Parquet needs one of the packages {', '.join(PARQUET_READERS)}")
    for engine in engines:
        try:
            return running(_query_of)(str(Path(path).resolve()), engine)
        except RuntimeError:
            continue
    raise ValueError("the file must be valid Parquet")


def read_parquet(path: str, names: Collection[str] | None = None, rows: int | None = None) -> Any:
    """The columns of those names that a Parquet file has, or all, in memory, or its first rows. Raises as
    `scan_parquet`, and `RuntimeError` where the file is damaged further on."""
    import narwhals.stable.v2 as nw

    query = nw.from_native(scan_parquet(path))
    there = [name for name in query.collect_schema().names() if names is None or name in names]
    wanted = query.select(there) if rows is None else query.select(there).head(rows)
    return running(wanted.lazy().collect)().to_native()


def _query_of(place: str, engine: Any) -> Any:
    import narwhals.stable.v2 as nw

    name = glob.escape(place) if engine == "duckdb" else place
    query = nw.scan_parquet(name, backend=engine, **PARQUET_READERS[engine])
    query.collect_schema()
    return query.to_native()
