"""Cells of text: one public rule for each, valid files read by RFC 4180, others refused whole with one sentence."""

from __future__ import annotations

import bz2
import contextlib
import csv
import encodings.aliases
import gzip
import io
import lzma
import math
import re
import unicodedata
import warnings
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pq
from pq.core.kind import Date, Duration, Kind, RealNumber, Time, Timestamp
from pq.private.columns.files import INVALID, SHIFTING, TextFormat, compression_of
from pq.private.columns.frames import column_of, records_of
from pq.private.columns.text import CURRENCY, CellRule, TextColumn

NAN = math.nan
PLAIN, ENGLISH, GERMAN = CellRule(), CellRule(thousands=","), CellRule(decimal=",", thousands=".")
CELLS: list[tuple[CellRule, str, float]] = [
    (PLAIN, " 12 ", 12.0),
    (PLAIN, "", NAN),
    (PLAIN, "   ", NAN),
    (PLAIN, "66,000.00", NAN),
    (PLAIN, "$66000", 66000.0),
    (PLAIN, "-$ 5.5", -5.5),
    (PLAIN, "$-5.5", -5.5),
    (PLAIN, "12 €", 12.0),
    (PLAIN, "--5", NAN),
    (PLAIN, "-$-5", NAN),
    (PLAIN, "1_0", NAN),
    (PLAIN, "0x10", NAN),
    (PLAIN, "١٢", NAN),
    (PLAIN, "1e3", 1000.0),
    (PLAIN, "1e", NAN),
    (PLAIN, ".5", 0.5),
    (PLAIN, "5.", 5.0),
    (PLAIN, ".", NAN),
    (PLAIN, "+7", 7.0),
    (PLAIN, "-Infinity", -math.inf),
    (PLAIN, "nan", NAN),
    (PLAIN, "1 2", NAN),
    (PLAIN, "12%", NAN),
    (PLAIN, "9" * 5000, math.inf),
    (ENGLISH, "66,000.00", 66000.0),
    (ENGLISH, "$1,234,567.5", 1234567.5),
    (ENGLISH, "66,00", NAN),
    (ENGLISH, "1,5", NAN),
    (ENGLISH, "1234,567", NAN),
    (ENGLISH, ",123", NAN),
    (GERMAN, "66.000,5", 66000.5),
    (GERMAN, "0,5", 0.5),
    (GERMAN, "0.5", NAN),
    (CellRule(thousands="'"), "1'000", 1000.0),
    (CellRule(thousands="\u202f"), "1\u202f000", 1000.0),
    (CellRule(Date()), "1970-01-02", 86400.0),
    (CellRule(Date()), "1970-01-02T00:00", NAN),
    (CellRule(Date()), "02/01/1970", NAN),
    (CellRule(Date()), "1970-02-30", NAN),
    (CellRule(Timestamp()), "1970-01-01T01:00:00.5", 3600.5),
    (CellRule(Timestamp()), "1970-01-01T01:00+01:00", 0.0),
    (CellRule(Timestamp()), "0001-01-01T00:00+23:59", -62135683140.0),
    (CellRule(Time()), "00:01", 60.0),
    (CellRule(Time()), "24:30", NAN),
    (CellRule(Duration()), "P1DT2H30M1.5S", 95401.5),
    (CellRule(Duration()), "-PT1M", -60.0),
    (CellRule(Duration()), "P2W", 1209600.0),
    (CellRule(Duration()), "P1Y", NAN),
    (CellRule(Duration()), "P", NAN),
    (CellRule(Duration()), "P1DT", NAN),
    (CellRule(Duration()), "", NAN),
]


@pytest.mark.parametrize(("rule", "cell", "wanted"), CELLS)
def test_a_cell_is_read_by_its_rule(rule: CellRule, cell: str, wanted: float) -> None:
    found = rule.read(cell)
    assert found == wanted or (math.isnan(found) and math.isnan(wanted))


@given(st.text(max_size=12), st.sampled_from([rule for rule, _, _ in CELLS]))
def test_no_cell_raises(cell: str, rule: CellRule) -> None:
    assert isinstance(rule.read(cell), float)


@given(st.decimals(-(10**9), 10**9, places=3), st.sampled_from([PLAIN, ENGLISH, GERMAN]), st.booleans())
def test_a_number_that_is_written_by_the_rule_is_read(number: Decimal, rule: CellRule, parted: bool) -> None:
    text = f"{number:,.3f}" if parted and rule.thousands else f"{number:.3f}"
    marks = {",": rule.thousands or ",", ".": rule.decimal}
    assert rule.read("".join(marks.get(c, c) for c in text)) == float(number)


def test_the_currency_signs_are_those_of_unicode() -> None:
    assert all(unicodedata.category(sign) == "Sc" for sign in CURRENCY if sign not in "-\u20cf")


@pytest.mark.parametrize(
    ("options", "name"),
    [({"decimal": "ab"}, "decimal"), ({"decimal": "5"}, "decimal"), ({"thousands": ""}, "thousands"),
     ({"thousands": "."}, "thousands"), ({"thousands": "-"}, "thousands"), ({"decimal": ""}, "decimal")],
)  # fmt: skip
def test_marks_that_are_none_are_refused(options: dict[str, str], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        CellRule(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", [RealNumber(), Date(), Timestamp(), Time(), Duration()], ids=str)
def test_a_rule_says_what_it_reads(kind: Kind) -> None:
    example = re.search(r"such as (\S+?),? ?(?:in UTC|;|$)", f"{CellRule(kind)}".partition("; any")[0] + ";")
    assert kind == RealNumber() or not math.isnan(CellRule(kind).read(example[1].rstrip(",;")))  # type: ignore[index]
    column = TextColumn(["x", "1"], CellRule(kind))
    assert column_of(column).kind == kind
    assert repr(column) == "<TextColumn of sensitive records>"


# --- files -----------------------------------------------------------------------------------------------------------


def test_a_quoted_cell_with_line_breaks_is_one_record() -> None:
    content = b'note,age\n"two\nlines,99\nlines,99",32\n'
    assert TextFormat().column(content, "age") == ["32"]
    people = "".join(f"quiet,{30 + i % 10}\n" for i in range(100)).encode()
    loud = b'"two\nlines,99\nlines,99",32\n' * 400
    x = TextColumn(TextFormat().column(b"note,age\n" + people + loud, "age"), PLAIN)
    assert len(records_of(x)[0]) == 500 and records_of(x)[0].max() == 39


INVALID_FILES = {
    "a quote that is not closed": b'a,b\n"1,2\n3,4\n',
    "a quote that is closed too early": b'a,b\n"1"2,3\n',
    "a quote in a bare cell": b'a,b\n1",2\n3,"4\n',
    "a row that is too short": b"a,b\n1\n",
    "a row that is too long": b"a,b\n1,2,3\n",
    "a blank line among rows of two": b"a,b\n1,2\n\n3,4\n",
    "a lone carriage return": b"a,b\n1,2\r3,4\n",
    "an unclosed quote among 101 lines": b"a,b\n" + b"1,2\n" * 50 + b'1,"2\n' + b"1,2\n" * 50,
}


@pytest.mark.parametrize("name", INVALID_FILES)
def test_a_file_that_is_not_valid_is_refused_whole_with_one_sentence(name: str) -> None:
    with pytest.raises(ValueError) as refusal:
        TextFormat().column(INVALID_FILES[name], "b")
    assert str(refusal.value) == INVALID
    assert isinstance(TextFormat(by_line=True).column(INVALID_FILES[name], "b"), list)


@pytest.mark.parametrize("compression", ["gzip", "bz2", "xz"])
def test_compressed_files_and_broken_ones(compression: str) -> None:
    pack = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}[compression]
    packed, layout = pack(b"a\n1\n2\n"), TextFormat(compression=compression)
    assert layout.column(packed, "a") == ["1", "2"]
    for broken in (packed[:-9], b"a\n1\n", packed[:20]):
        with pytest.raises(ValueError) as refusal:
            layout.column(broken, "a")
        assert str(refusal.value) == INVALID


cells = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=6)
tables = st.integers(1, 3).flatmap(lambda w: st.lists(st.lists(cells, min_size=w, max_size=w), max_size=5))


@given(
    tables, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]), st.sampled_from(["utf-8", "utf-16", "utf-8-sig"])
)
def test_what_is_written_by_the_standard_is_read_as_it_was(
    rows: list[list[str]], separator: str, end: str, encoding: str
) -> None:
    file = io.StringIO(newline="")
    header = [f"c{i}" for i in range(len(rows[0]) if rows else 1)]
    csv.writer(file, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([header, *rows])
    found = TextFormat(separator, encoding).column(file.getvalue().encode(encoding), "c0")
    assert found == [row[0] for row in rows]


@given(st.text(st.sampled_from('",\n\r1a'), max_size=12))
def test_valid_files_are_those_of_the_grammar(body: str) -> None:
    """An automaton that reads one character after another."""
    text, state, widths = "a,b\n" + body, "start", [0]
    for c in [*text, "end"]:
        if c == "end" or (state == "return" and c != "\n"):
            break
        if state in ("bare", "start") and c == '"':
            state = "quoted" if state == "start" else "bad"
        elif state == "quoted":
            state = "closed" if c == '"' else "quoted"
        elif state == "closed" and c == '"':
            state = "quoted"
        elif c == ",":
            state, widths[-1] = "start", widths[-1] + 1
        elif c == "\n":
            state = "start"
            widths.append(0)
        elif c == "\r":
            state = "return"
        else:
            state = "bad" if state == "closed" else "bare"
        if state == "bad":
            break
    if text.endswith("\n") and state == "start":
        widths.pop()
    valid = state in ("start", "bare", "closed") and set(widths) == {1}
    try:
        TextFormat().column(text.encode(), "a")
        accepted = True
    except ValueError:
        accepted = False
    assert accepted == valid


@given(st.lists(st.binary(max_size=4).filter(lambda b: b"\n" not in b), min_size=1, max_size=5), st.binary(max_size=4))
def test_by_line_no_record_changes_how_another_is_read(lines: list[bytes], other: bytes) -> None:
    layout = TextFormat(by_line=True)
    before = layout.column(b"a\n" + b"\n".join(lines), "a")
    after = layout.column(b"a\n" + b"\n".join([*lines, other.replace(b"\n", b"")]), "a")
    assert after[: len(before)] == before and len(after) <= len(before) + 1


def reads_lines(encoding: str) -> bool:
    try:
        return TextFormat(by_line=True, encoding=encoding).column(b"a\n1", "a") == ["1"]
    except ValueError:
        return False


ODD_LINES = st.binary(max_size=4).map(lambda line: line.replace(b"\n", b""))
LINE_ENDING = [name for name in sorted(set(encodings.aliases.aliases.values())) if reads_lines(name)]


@given(st.sampled_from(LINE_ENDING), st.lists(ODD_LINES, max_size=4), ODD_LINES)
def test_by_line_no_record_changes_how_another_is_read_in_any_encoding(
    encoding: str, lines: list[bytes], other: bytes
) -> None:
    """In some a byte changes what all that follow mean, or makes the decoder raise."""
    layout = TextFormat(by_line=True, encoding=encoding)
    plain = [b"1", *lines, b"2"]
    before = layout.column(b"a\n" + b"\n".join(plain), "a")
    after = layout.column(b"a\n" + b"\n".join([plain[0], other, *plain[1:]]), "a")
    assert before[0] == after[0] == "1" and before[-1] == after[-1] == "2"
    assert after == before or after[:1] + after[2:] == before  # a blank line is no record


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp037"])
def test_lines_are_records_only_where_a_byte_ends_them(encoding: str) -> None:
    with pytest.raises(ValueError, match=r"^encoding must be one in which the byte 0x0A ends a line"):
        TextFormat(by_line=True, encoding=encoding)
    assert TextFormat(encoding=encoding).column("a\n1\n".encode(encoding), "a") == ["1"]


def reads_files(encoding: str) -> bool:
    try:
        return TextFormat(encoding=encoding).column("a,b\n1,2\n".encode(encoding), "a") == ["1"]
    except ValueError:
        return False


OF_FILES = [name for name in sorted(set(encodings.aliases.aliases.values())) if reads_files(name)]
MARKED = {"utf_8_sig", "utf_16", "utf_32"}  # which begin all that they encode with a mark


@settings(max_examples=400)
@given(st.sampled_from(sorted({*OF_FILES} - MARKED)), st.integers(0, 3), st.binary(max_size=4))
@example("utf_16_le", 1, b"~")
@example("shift_jis", 1, b"\x81")
def test_a_valid_file_is_read_alike_but_for_the_record_that_is_another(encoding: str, before: int, odd: bytes) -> None:
    """In every encoding that files may have, with odd bytes in one record: refused, or the others are as before."""
    if {",", "\n", "\r", '"'} & set(odd.decode(encoding, errors="replace")):
        return  # other rows and cells
    plain = [f"{i},7\n".encode(encoding) for i in range(5)]
    rows = ["a,b\n".encode(encoding), *plain[:before], odd + ",7\n".encode(encoding), *plain[before:]]
    found, refusal = [], ""
    try:
        found = TextFormat(encoding=encoding).column(b"".join(rows), "a")
    except ValueError as error:
        refusal = str(error)
    assert refusal == INVALID or found[:before] + found[before + 1 :] == ["0", "1", "2", "3", "4"]
    assert not refusal or len("\n".encode(encoding)) > 1, "bytes that mean nothing are replaced"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp037", "cp424", "cp875", "ascii"])
def test_a_byte_that_means_nothing_refuses_no_file(encoding: str) -> None:
    text = TextFormat(encoding=encoding)
    for byte in range(256):
        cell = bytes([byte])
        if not {",", "\n", "\r", '"'} & set(cell.decode(encoding, errors="replace")):
            content = "a,b\n0,7\n".encode(encoding) + cell + "1,7\n2,7\n".encode(encoding.removesuffix("-sig"))
            assert text.column(content, "a")[::2] == ["0", "2"], byte
    assert TextFormat(by_line=True, encoding="utf-8-sig").column("a\n1\n".encode("utf-8-sig"), "a") == ["1"]


def test_encodings_in_which_a_record_changes_what_others_mean_are_of_lines_only() -> None:
    content = b"a\n1\n~{\n2\n3\n"
    assert content.decode("hz", errors="replace").split("\n")[1:-1] != ["1", "~{", "2", "3"]
    for encoding in SHIFTING:
        with pytest.raises(ValueError, match=r"^encoding must be one in which the same bytes mean the same everywhere"):
            TextFormat(encoding=encoding)
    assert TextFormat(by_line=True, encoding="hz").column(content, "a")[2:] == ["2", "3"]


def test_decoding_before_lines_are_parted_would_let_one_hide_others() -> None:
    """A control: what a sequence of escape does to all that follows."""
    content = b"a\n1\n\x1b$B\n2\n3\n"
    assert content.decode("iso2022_jp", errors="replace").split("\n")[1:-1] != ["1", "\x1b$B", "2", "3"]
    assert TextFormat(by_line=True, encoding="iso2022_jp").column(content, "a")[2:] == ["2", "3"]


@given(
    st.binary(max_size=40),
    st.sampled_from(["utf-8", "utf-16", "utf-7", "shift_jis", "cp1252", "raw_unicode_escape", "hz"]),
    st.sampled_from(["none", "gzip", "bz2", "xz"]),
    st.booleans(),
)
def test_any_bytes_are_read_or_refused_with_fixed_words(
    body: bytes, encoding: str, packing: str, by_line: bool
) -> None:
    words, by_line = "", encoding in ("utf-7", "hz", "raw_unicode_escape") or (by_line and encoding != "utf-16")
    try:
        TextFormat(encoding=encoding, compression=packing, by_line=by_line).column(b"a\n" + body, "a")
    except ValueError as refusal:
        words = str(refusal)
    assert words in ("", INVALID, "column: the header row has no column named 'a'")


def test_names_of_columns_and_of_files() -> None:
    with pytest.raises(ValueError, match=r"^column: the header row has no column named 'age'$") as refusal:
        TextFormat().column(b"Ann,52\n", "age")
    assert "Ann" not in str(refusal.value)
    with pytest.raises(ValueError, match="more than one column"):
        TextFormat().column(b"age, age\n", "age")
    with pytest.raises(ValueError, match="no column"):
        TextFormat().column(b"", "age")
    assert TextFormat().column(b"age", "age") == []
    assert TextFormat().column(b"age\n1\n\n2", "age") == ["1", "", "2"]
    assert [compression_of(name) for name in ("a.csv", "a.csv.GZ", "a.bz2", "a.xz")] == ["none", "gzip", "bz2", "xz"]


@pytest.mark.parametrize(
    ("options", "name"),
    [({"separator": ""}, "separator"), ({"separator": '"'}, "separator"), ({"encoding": "klingon"}, "encoding"),
     ({"encoding": "hex"}, "encoding"), ({"encoding": "a\0"}, "encoding"), ({"compression": "zip"}, "compression")],
)  # fmt: skip
def test_formats_that_are_none_are_refused(options: dict[str, str], name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must"):
        TextFormat(**options)  # type: ignore[arg-type]


# --- inspection ------------------------------------------------------------------------------------------------------


def test_an_inspection_tells_how_cells_are_read_and_how_many_are_not() -> None:
    found = pq.inspect(TextColumn(["66,000.00", "$66,000", " 12 ", "", "Ann"], PLAIN))
    assert (found.kind, found.unread, found.rule) == ("number", 4, str(PLAIN))
    assert pq.inspect(TextColumn(["66,000.00", "$66,000", " 12 ", "", "Ann"], ENGLISH)).unread == 2
    for x in ([1.0, None, "?"], pq.SortedColumn([1.0, NAN, NAN]), pq.Counts([1.0], [3], missing=2)):
        assert pq.inspect(x).unread == 2
    assert str(found).startswith("NOT PRIVATE") and found.to_dict()["private"] is False


def test_an_inspection_tells_nothing_else_of_the_records() -> None:
    """No minimum, no count, no ties: it is the same for all columns of one kind with as many unread cells."""
    texts = {str(pq.inspect(x)) for x in ([1.0, None], [None, -7.5, 3.0, 3.0], [None] + [2.0**52] * 999)}
    assert len(texts) == 1


# --- privacy ---------------------------------------------------------------------------------------------------------


def losses(read: Callable[[bytes], Any], record: bytes) -> float:
    """The largest loss, over outputs, between a file and the same file with one record more; epsilon is one."""
    people = b"note,age\n" + b"".join(b"quiet,%d\n" % (30 + i % 10) for i in range(40))
    options: dict[str, Any] = {"epsilon": 1, "priors": pq.Uniform(0, 120), "grid": 1, "mechanism": "tree"}
    outputs = [[25.0, 30.0], [33.0, 36.0], [35.0, 39.0], [39.0, 99.0], [99.0, 99.0]]
    densities = [
        [pq.log_density(read(content), output, [0.25, 0.75], **options) for output in outputs]
        for content in (people, people + record)
    ]
    return max(abs(a - b) for a, b in zip(*densities, strict=True))


RECORDS = [
    b"x,99\n",
    b'"two\nlines,99\nlines,99\nlines,99\nlines,99",99\n',
    b'"",\n',
    b'"\xff",1e400\r\n',
    b'"a""\n,b",-1',
]


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("on_nan", ["drop", "lowest", "highest"])
def test_a_record_of_a_file_moves_no_density_by_more_than_epsilon(record: bytes, on_nan: str) -> None:
    def read(content: bytes) -> Any:
        return records_of(TextColumn(TextFormat().column(content, "age"), PLAIN), on_nan)[0]

    assert losses(read, record) <= 1 + 1e-12


def test_reading_lines_as_records_of_a_valid_file_would_exceed_epsilon() -> None:
    """The broken reading that the bound must catch: one quoted cell counts as several people."""

    def read(content: bytes) -> Any:
        rows = [line.split(",") for line in content.decode().split("\n")[1:]]
        return [float(row[1].strip('"')) for row in rows if len(row) > 1]

    assert losses(read, RECORDS[1]) > 1.4


def test_no_codec_warns_of_what_it_finds() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for encoding in OF_FILES:
            with contextlib.suppress(ValueError):
                TextFormat(encoding=encoding).column("age\n32\n\\d\n".encode(encoding) + b"\\d\xff\n", "age")
