"""A sequence that breaks off within a day is not gone on with from the day before: that day may be out already."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pq import Ledger
from pq.private.sequential import loop, state
from pq.sequential import PubPrev, Session, release_sequence

DAYS = np.random.default_rng(0).normal(size=(5, 200))


def run(path: Path, predictor: PubPrev | None = None, **options: Any) -> Any:
    predictor = PubPrev([0.5], loc=0, scale=1) if predictor is None else predictor
    return release_sequence(DAYS, np.zeros((5, 0)), predictor, [0.5], epsilon=1, checkpoint=path, rng=1, **options)


@pytest.mark.parametrize("day", [1, 2, 3, 5])
def test_a_day_whose_state_cannot_be_stored_is_not_released_again(
    day: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, stores, store = tmp_path / "state", [0], loop._store

    def full(session: Any, to: Path) -> Any:
        stores[0] += 1
        if stores[0] == day:
            raise OSError("no space left")
        return store(session, to)

    monkeypatch.setattr(loop, "_store", full)
    with pytest.raises(OSError, match="no space") as failure:
        run(path)
    assert len(failure.value.releases) == day  # type: ignore[attr-defined]
    for _ in range(2):
        with pytest.raises(ValueError, match="taken up by a run that ended before"):
            run(path)


class Interrupted(PubPrev):
    """Is interrupted when it should take note of the first release."""

    def observe(self, features: Any, released: Any) -> None:
        raise KeyboardInterrupt


def test_a_first_day_that_was_interrupted_is_not_released_again(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt) as failure:
        run(tmp_path / "state", Interrupted([0.5], loc=0, scale=1))
    assert len(failure.value.releases) == 1  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="taken up by a run that ended before"):
        run(tmp_path / "state", Interrupted([0.5], loc=0, scale=1))


def test_a_sequence_that_breaks_between_days_goes_on(tmp_path: Path) -> None:
    def broken() -> Any:
        yield from DAYS[:3]
        raise RuntimeError("the source of data sets broke")

    options: dict[str, Any] = {"epsilon": 1, "checkpoint": tmp_path / "state", "rng": 1}
    with pytest.raises(RuntimeError) as failure:
        release_sequence(broken(), np.zeros((5, 0)), PubPrev([0.5], loc=0, scale=1), [0.5], **options)
    assert len(failure.value.releases) == 3  # type: ignore[attr-defined]
    assert len(run(tmp_path / "state")) == 2


def test_a_run_goes_on_from_no_state_that_another_has_taken_up(tmp_path: Path) -> None:
    path, others = tmp_path / "state", []

    def slow() -> Any:
        yield DAYS[0]
        others.append(run(path))  # while the first run waits for its second data set
        yield from DAYS[1:]

    with pytest.raises(ValueError, match="taken up by another run") as failure:
        release_sequence(slow(), np.zeros((5, 0)), PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1, checkpoint=path)
    assert (len(failure.value.releases), len(others[0])) == (1, 4)  # type: ignore[attr-defined]
    assert len(run(path)) == 0  # the state of the other run is where it was


def test_a_run_waits_for_no_data_set_while_another_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "state"
    known, predictor = np.zeros((5, 0)), PubPrev([0.5], loc=0, scale=1)
    options: dict[str, Any] = {"epsilon": 1, "checkpoint": path}
    with ThreadPoolExecutor() as pool:
        waits, goes = threading.Event(), threading.Event()

        def slow() -> Any:
            yield DAYS[0]
            waits.set()
            assert goes.wait(60)
            yield from DAYS[1:]

        first = pool.submit(
            release_sequence, slow(), np.zeros((5, 0)), PubPrev([0.5], loc=0, scale=1), [0.5], **options
        )
        assert waits.wait(60)

        def noted() -> Any:
            yield from DAYS[:2]
            os.replace(path, state.used(path))  # as within the third data set
            goes.set()
            with pytest.raises(ValueError, match="taken up by another run"):
                first.result(60)
            os.replace(state.used(path), path)
            yield from DAYS[2:]

        other = release_sequence(noted(), known, predictor, [0.5], **options)
    assert len(other) == 4


def test_of_two_that_begin_at_one_checkpoint_one_goes_on(tmp_path: Path) -> None:
    path, others = tmp_path / "state", []

    def slow() -> Any:
        others.append(run(path))  # after this run has found no state
        yield from DAYS

    with pytest.raises(ValueError, match="taken up by another run") as failure:
        release_sequence(slow(), np.zeros((5, 0)), PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1, checkpoint=path)
    assert (len(failure.value.releases), len(others[0])) == (0, 5)  # type: ignore[attr-defined]


def test_a_process_that_ends_while_it_takes_a_state_up_is_not_begun_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    release_sequence(DAYS[:2], np.zeros((2, 0)), PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1, checkpoint=path)
    path.rename(f"{path}.0123456789abcdef.claimed")  # where kill -9 leaves it
    with pytest.raises(ValueError, match="taken up by a run that ended before"):
        run(path)


def test_a_state_is_not_stored_where_nobody_could_take_it_up(tmp_path: Path) -> None:
    """Its name gets longer while somebody goes on from it."""
    path = tmp_path / ("x" * 240)
    with pytest.raises(OSError, match="too long") as failure:
        run(path)
    assert failure.value.releases == []  # type: ignore[attr-defined]
    session = Session(PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1)
    with pytest.raises(OSError, match="too long"):
        session.save(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("what", ["folder", "full folder", "link to a folder", "pipe", "socket"])
def test_what_is_no_file_is_no_checkpoint_and_stays_where_it_is(what: str, tmp_path: Path) -> None:
    path, ledger = tmp_path / "there", Ledger(10)
    listening = socket.socket(socket.AF_UNIX)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "socket":
        path = Path(os.path.relpath(path))  # has few letters only
        listening.bind(str(path))
    else:
        folder = tmp_path / "elsewhere" if "link" in what else path
        folder.mkdir()
        if what == "full folder":
            (folder / "precious").write_text("x")
        if folder != path:
            path.symlink_to(folder)
    before = sorted((file, file.lstat().st_ino) for file in tmp_path.rglob("*"))
    with pytest.raises(ValueError, match=r"^checkpoint must be of a file") as failure:
        run(path, ledger=ledger)
    assert not hasattr(failure.value, "releases") and ledger.spent == 0
    session = Session(PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1)
    for refused in (session.save, Session.resume):
        with pytest.raises(ValueError, match=r"^path must be of a file"):
            refused(path)
    assert sorted((file, file.lstat().st_ino) for file in tmp_path.rglob("*")) == before
    listening.close()


def test_devices_are_no_checkpoints() -> None:
    with pytest.raises(ValueError, match=r"^checkpoint must be of a file"):
        run(Path(os.devnull))
    with pytest.raises(ValueError, match=r"^path must be of a file"):
        Session.resume(os.devnull)


def test_a_folder_in_the_place_of_a_state_stays_there(tmp_path: Path) -> None:
    path = tmp_path / "state"

    def moved() -> Any:
        yield DAYS[0]
        path.rename(tmp_path / "elsewhere")
        path.mkdir()
        yield from DAYS[1:]

    with pytest.raises(ValueError, match="taken up by another run"):
        release_sequence(moved(), np.zeros((5, 0)), PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1, checkpoint=path)
    assert path.is_dir() and sorted(file.name for file in tmp_path.iterdir()) == ["elsewhere", "state"]


def test_a_file_that_is_no_state_is_refused_as_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_text("x")
    with pytest.raises(ValueError, match=r"^checkpoint must be a saved session"):
        run(path)
    assert path.read_text() == "x"


def test_of_two_that_find_one_state_the_later_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, ledger, look = tmp_path / "state", Ledger(10), loop._is_saved
    release_sequence(DAYS[:2], np.zeros((2, 0)), PubPrev([0.5], loc=0, scale=1), [0.5], epsilon=1, checkpoint=path)

    def slow(at: Path) -> bool:
        found = look(at)
        path.rename(f"{path}.0123456789abcdef.claimed")  # by the other, as soon as this one has looked
        return found

    monkeypatch.setattr(loop, "_is_saved", slow)
    with pytest.raises(ValueError, match=r"^checkpoint was taken up by another run"):
        run(path, ledger=ledger)
    assert ledger.spent == 0


def test_what_is_in_the_way_of_a_state_is_seen_before_the_release(tmp_path: Path) -> None:
    (tmp_path / "state.part").mkdir()
    with pytest.raises(ValueError, match=r"^checkpoint must be of a file") as failure:
        run(tmp_path / "state")
    assert failure.value.releases == [] and [one.name for one in tmp_path.iterdir()] == ["state.part"]  # type: ignore[attr-defined]
