"""`pq release` and `pq inspect` on files of every kind: valid ones are read by a printed rule, others refused whole."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

import pq
from pq import Cauchy, Normal, Uniform, cli
from pq.cli.release import parse_prior
from pq.private.columns import files
from pq.private.columns.files import INVALID

SURE = ["--quantiles", "0.5", "--epsilon", "1e5"]
ROUND = ["--prior", "uniform(0, 1e6)", "--grid", "1"]


def pq_command(*arguments: str, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(cli.main, list(arguments), input=stdin)


def released(content: bytes, *options: str, name: str = "x.csv", folder: Path) -> list[str]:
    path = folder / name
    path.write_bytes(content)
    answer = pq_command("release", str(path), "--column", "x", "--quiet", *SURE, *options)
    assert answer.exit_code == 0, answer.output
    assert answer.stderr == ""
    return answer.stdout.split()


def test_a_record_of_many_lines_is_one_record(tmp_path: Path) -> None:
    quiet = b"".join(b"quiet,%d\n" % (30 + i % 11) for i in range(110))
    loud = b'"two\nlines,99\nlines,99",32\n' * 100
    assert float(released(b"note,x\n" + quiet + loud, *ROUND, folder=tmp_path)[0]) <= 33


TEXTS = {
    "marks of English": (b'x\n"66,000.00"\n"$66,000"\n 66000 \n', ["--thousands", ","]),
    "marks of German": (b"x;y\n66.000,00;1\n66000;2\n", ["--separator", ";", "--decimal", ",", "--thousands", "."]),
    "tabs": (b"y\tx\n1\t66000\n", ["--separator", "tab"]),
    "another encoding": ("x\n66000 €\n".encode("utf-16"), ["--encoding", "utf-16"]),
    "compressed": (gzip.compress(b"x\n66000\n"), ["--compression", "gzip"]),
    "odd lines": (b'y,x\n"1,66000\n2,66000\n3,66000\n4\n', ["--lines"]),
}


@pytest.mark.parametrize("name", TEXTS)
def test_cells_are_read_as_the_options_say(name: str, tmp_path: Path) -> None:
    content, options = TEXTS[name]
    assert abs(float(released(content, *options, *ROUND, folder=tmp_path)[0]) - 66000) <= 1


def test_the_name_of_a_file_tells_its_compression(tmp_path: Path) -> None:
    assert abs(float(released(gzip.compress(b"x\n70\n"), *ROUND, name="x.csv.gz", folder=tmp_path)[0]) - 70) <= 1


TIMES = {
    "date": (b"x\n2026-03-01\n" * 1 + b"2026-03-01\n" * 9, ["uniform(2026-01-01, 2027-01-01)", "P1D"], "2026-03-01"),
    "timestamp": (b"x\n" + b"2026-03-01T12:30:00+01:00\n" * 9, ["uniform('2026-01-01', 2027-01-01T00:00)", "PT1M"],
                  "2026-03-01T11:30:00"),
    "time": (b"x\n" + b"12:30\n" * 9, ["uniform(00:00, 23:59:59)", "60"], "12:30:00"),
    "duration": (b"x\n" + b"PT90M\n" * 9, ["uniform(PT0M, P1D)", "PT1M"], "1:30:00"),
}  # fmt: skip


@pytest.mark.parametrize("kind", TIMES)
def test_dates_and_times_come_back_as_they_came(kind: str, tmp_path: Path) -> None:
    content, (prior, step), wanted = TIMES[kind]
    path = tmp_path / "x.csv"
    path.write_bytes(content)
    arguments = [str(path), "--column", "x", "--type", kind, *SURE, "--prior", prior, "--grid", step]
    answer = pq_command("release", *arguments)
    assert answer.exit_code == 0, answer.output
    assert f"     0.5  {wanted}\n" in answer.stdout
    assert "a cell counts as a" in answer.stdout
    facts = json.loads(pq_command("release", *arguments, "--json").stdout)
    assert facts["texts"] == [wanted] and facts["kind"] == kind and facts["cells"].startswith("a cell counts")


def test_a_release_prints_the_rule_and_not_how_many_cells_it_did_not_read(tmp_path: Path) -> None:
    tails = set()
    for content in (b"x\n1\n2\n", b"x\nAnn\nBob\n", b"x\n"):
        path = tmp_path / "x.csv"
        path.write_bytes(content)
        answer = pq_command("release", str(path), "--column", "x", "--quantiles", "0.5", "--epsilon", "1", *ROUND)
        assert answer.exit_code == 0, answer.output
        tails.add(next(line for line in answer.stdout.splitlines() if line.startswith("a cell counts")))
    assert len(tails) == 1
    assert "decimal mark '.', no thousands mark" in tails.pop()


@pytest.mark.parametrize("content", [b'x,y\n"1,2\n3,4\n', b"x,y\n1\n", b'x,y\n1",2\n', b"x,y\n1,2,3\n"])
def test_a_file_that_is_not_valid_is_refused_with_one_sentence(content: bytes) -> None:
    answers = {
        (command, answer.exit_code, answer.output.rpartition("Error: ")[2].strip())
        for command, more in (("release", [*SURE, *ROUND]), ("inspect", []))
        for answer in [pq_command(command, "-", "--column", "x", *more, stdin=content)]
    }
    assert answers == {("release", 2, INVALID), ("inspect", 2, INVALID)}


def test_parquet_declares_its_types(tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    frame = pl.DataFrame({"x": [70] * 9, "day": ["2026-03-01"] * 9, "name": ["Ann"] * 9})
    frame.with_columns(pl.col("day").str.to_date()).write_parquet(path)
    answer = pq_command("release", str(path), "--column", "x", "--quiet", *SURE, *ROUND)
    assert abs(float(answer.stdout) - 70) <= 1
    days = ["--prior", "uniform(2026-01-01, 2027-01-01)", "--grid", "P1D"]
    answer = pq_command("release", str(path), "--column", "day", *SURE, *days)
    assert "0.5  2026-03-01\n" in answer.stdout and "by its declared type" in answer.stdout
    for column, more, complaint in (("name", [], "value must name a column of numbers"), ("age", [], "value must name"),
                                    ("x", ["--decimal", ","], "do not apply to Parquet")):  # fmt: skip
        answer = pq_command("release", str(path), "--column", column, *SURE, *ROUND, *more)
        assert answer.exit_code == 2 and complaint in answer.output and "Ann" not in answer.output
    path.write_bytes(b"PAR1 Ann")
    answer = pq_command("release", str(path), "--column", "x", *SURE, *ROUND)
    assert (answer.exit_code, answer.output.rpartition("Error: ")[2].strip()) == (2, "the file must be valid Parquet")


@pytest.mark.parametrize("engine", list(files.PARQUET_READERS))
@pytest.mark.parametrize("name", ["p[1].parquet", "p?.parquet", "p*.parquet", "x=7/p1.parquet", "http:/p1.parquet"])
def test_a_parquet_file_is_the_one_of_that_name(
    engine: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Engines take some names for patterns, folders for columns, and others for addresses."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "find_spec", lambda one: one == engine or None)
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    for file, value in (("p1.parquet", 1000.0), ("p2.parquet", 1000.0), (name, 1.0)):
        pl.DataFrame({"a": [value] * 3}).write_parquet(file)
    found = pq.count(files.scan_parquet(name))
    assert (found.values.tolist(), found.counts.tolist()) == ([1.0], [3])


def damaged(frame: pl.DataFrame, path: Path) -> None:
    """A Parquet file of which only the footer is left."""
    frame.write_parquet(path, compression="zstd")
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    path.write_bytes(content[:4] + b"\xff" * (len(content) - 4 - footer) + content[-footer:])


BY = ["--by", "key", "--keys", "a,b"]


@pytest.mark.parametrize("engine", list(files.PARQUET_READERS))
@pytest.mark.parametrize("groups", [[], BY, [*BY, "--person", "id"]], ids=" ".join)
def test_a_damaged_file_costs_nothing(
    groups: list[str], engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "find_spec", lambda one: one == engine or None)
    path, account = tmp_path / "x.parquet", pq.Ledger.open(tmp_path / "x.ledger", total=2)
    frame = pl.DataFrame({"id": range(300), "key": ["a", "b", "c"] * 100, "x": [k % 7 / 2 for k in range(300)]})
    call = ["release", str(path), "--column", "x", "--quantiles", "0.5", "--prior", "uniform(0, 9)", *groups]
    call += ["--ledger", str(tmp_path / "x.ledger"), "--epsilon"]
    damaged(frame, path)
    answer = pq_command(*call, "1")
    assert answer.exit_code in (1, 2) and not answer.stdout and not account.entries
    answer = pq_command(*call, "3")  # is known before a record is read
    if engine != "pyarrow":  # which narwhals lets read all at once
        assert answer.exit_code == 1 and "epsilon 3 does not fit: 2 of 2 remain" in answer.output
    frame.write_parquet(path)
    assert pq_command(*call, "1").exit_code == 0 and len(account.entries) == 1


def test_an_engine_that_panics_at_a_type_leaves_the_file_to_the_next(tmp_path: Path) -> None:
    zone = pa.timestamp("us", "+05:30")
    pyarrow.parquet.write_table(pa.table({"a": [1.0], "t": pa.array([0], zone)}), tmp_path / "t.parquet")
    query = files.scan_parquet(str(tmp_path / "t.parquet"))
    assert pq.count(query, value="a").values.tolist() == [1.0] and pq.count(query, value="t").values.tolist() == [0.0]


def test_inspect_tells_the_holder_how_cells_are_read() -> None:
    content = b'x\n"66,000.00"\n"$66,000"\n 12 \n\nAnn\n'
    for options, unread in (([], 4), (["--thousands", ","], 2)):
        answer = pq_command("inspect", "-", "--column", "x", *options, stdin=content)
        assert answer.exit_code == 0, answer.output
        assert answer.stdout.startswith("NOT PRIVATE")
        assert f"unread  {unread}\n" in answer.stdout
        found = json.loads(pq_command("inspect", "-", "--column", "x", "--json", *options, stdin=content).stdout)
        assert found["unread"] == unread and found["private"] is False
    assert "NOT PRIVATE" in " ".join(pq_command("inspect", "--help").output.split())


HUGE = "9" * 500
WRONG = {
    "a long number in a prior": (["--prior", f"cauchy({HUGE}, 1)"], "within the range of a float"),
    "a longer one": (["--prior", f"cauchy({HUGE * 10}, 1)"], "prior"),
    "an infinite one": (["--prior", "cauchy(1e400, 1)"], "within the range of a float"),
    "many signs": (["--prior", f"cauchy({'-' * 3000}1, 1)"], "prior"),
    "many brackets": (["--prior", f"cauchy({'(' * 3000}"], "prior"),
    "arguments of nothing": (["--prior", "cauchy(**1)"], "prior"),
    "a sum of two": (["--prior", "cauchy(1+1, 1)"], "no number"),
    "a text": (["--prior", "cauchy('Ann', 1)"], "no number"),
    "a family that is nearly one": (["--prior", "couchy(0, 1)"], "did you mean cauchy?"),
    "a budget beyond the floats": (["--epsilon", "1e400"], "within the range of a float"),
    "an infinite budget": (["--epsilon", "inf"], "within the range of a float"),
    "a long budget": (["--epsilon", HUGE], "within the range of a float"),
    "no budget": (["--epsilon", "nan"], "--epsilon"),
    "a quantile beyond the floats": (["--quantiles", "0.5,1e400"], "quantiles"),
    "a long quantile": (["--quantiles", HUGE], "quantiles"),
    "a long step": (["--grid", HUGE], "--grid"),
    "a step that is no length": (["--grid", "P1Y"], "--grid"),
    "a power beyond the floats": (["--budget-power", "1e400"], "--budget-power"),
    "a separator of two": (["--separator", "ab"], "separator must"),
    "an encoding that is none": (["--encoding", "klingon"], "encoding must"),
    "two marks that are one": (["--thousands", "."], "thousands must"),
    "Parquet without a name": (["--format", "parquet"], "must have a name"),
    "an option that is nearly one": (["--seperator", ";"], "'--separator'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_option_is_refused_in_a_sentence(name: str) -> None:
    options, complaint = WRONG[name]
    answer = pq_command("release", "-", "--column", "x", *SURE, *ROUND, *options, stdin=b"not\0read")
    assert answer.exit_code == 2, answer.output
    assert complaint in answer.output
    assert len(answer.output) < 1500
    assert answer.exception is None or isinstance(answer.exception, SystemExit)


def test_a_file_that_cannot_be_read_is_no_traceback(tmp_path: Path) -> None:
    answer = pq_command("release", str(tmp_path / "absent.csv"), "--column", "x", *SURE, *ROUND)
    assert answer.exit_code == 2 and "does not exist" in answer.output


def test_a_prior_may_be_given_in_dates() -> None:
    assert parse_prior("uniform(1970-01-02, 1970-01-03T12:00:00)") == Uniform(86400.0, 216000.0)
    assert parse_prior("normal(loc='1970-01-02', scale=P10D)") == Normal(86400.0, 864000.0)
    assert parse_prior("Cauchy(-4, 1e3)") == Cauchy(-4.0, 1000.0)


def test_the_help_tells_the_exit_codes_and_a_wrong_command_the_nearest() -> None:
    for command in ("release", "inspect"):
        assert "Exit status: 0" in pq_command(command, "--help").output
    assert "inspect" in pq_command("--help").output
    answer = pq_command("realese")
    assert answer.exit_code == 2 and "did you mean release?" in answer.output
