"""Quantiles of every group of a table, under one budget (Section 3.1).

*What a person costs.* A group's release is private for one record more or less in that group, at a budget b that is
the same in all groups. A person who owns up to C records, wherever they lie, changes some groups by c1, c2, ... records
more or less with c1 + c2 + ... <= C; the groups are released independently, so their losses add up to at most
c1 b + c2 b + ... <= C b (parallel composition: a record costs b in its group and nothing in the others). So
b = epsilon / C makes the whole release epsilon-private, in however many groups the person's records are.

*Under "replace"* a record is taken out and another put in, perhaps in another group. The number of records is public
only of the whole table, not of a group: so a mechanism that is calibrated for replacing within a column of public size
would be wrong here. Each record replaced is one less in one group and one more in the same or in another: at most 2 C
changes, each of which costs b, and b = epsilon / (2 C). Both happen at once where a record moves, so that nothing less
will do.

*What keeps to it.* That a person has at most C records, in at most so many groups, is a promise of the caller's, or it
is enforced where the table says whose a record is: see `pq.private.columns.persons`. Which records are kept depends on
that person's records only, so that two tables that differ in one person differ in the records kept of that person.
Keys are public and each has a release, with or without records.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pq.core.budget.ledger import Ledger, charge
from pq.core.choices import Adaptation, Adjacency, Calibration, OnNan, Unknown, check_choice, checked_texts
from pq.core.exact import Number, budget_float, whole_number
from pq.core.grid import grid_step
from pq.private.columns.grouping import GroupedColumn, open_table
from pq.private.grouped import OTHER, GroupedRelease
from pq.private.prepare import prepare
from pq.private.randomness import Source
from pq.private.release import fulfil

CHANGES = {"add-remove": 1, "replace": 2}  # of the groups' records, for one record of a person


def release_groups(
    table: Any,
    quantiles: Any,
    *,
    by: str,
    value: str,
    keys: Any,
    epsilon: Number,
    priors: Any,
    person: str | None = None,
    max_groups: int = 1,
    unknown: Unknown = "drop",
    mechanism: str = "auto",
    size_guess: Any = None,
    public_total: Any = None,
    assume_smooth: bool = False,
    grid: Number | None = None,
    ledger: Ledger | str | os.PathLike[str] | None = None,
    purpose: str = "",
    adjacency: Adjacency = "add-remove",
    calibration: Calibration | None = None,
    adaptation: Adaptation | None = None,
    arity: int | None = None,
    budget_power: float | None = None,
    on_nan: OnNan = "drop",
    max_contributions: int | None = None,
    rng: Any = None,
) -> GroupedRelease:
    """Release quantiles of a sensitive column in each of several public groups, for epsilon in all (`alg:quantiles`).

    table: a data frame or a lazy query of polars, DuckDB, Dask, Spark, pandas, pyarrow or whatever else narwhals knows,
        or a mapping from names to columns. A query is reduced where it lives: only the distinct pairs of key and value
        must fit in memory, with person the distinct triples. Keys and IDs that are texts or bytes are refused in
        queries of engines that are not named here, which may call different ones equal: hand over the result.
    by, value: names, which are texts, of the columns of keys and of numbers, dates, timestamps, times or durations.
    keys: (g,) public keys, or the path of a public CSV file with a column named as `by`; never looked up in the table.
        They compare by the declared type of the key column: as texts, as numbers are read for a release, or as times,
        exactly; where that leaves it open, as with objects, a record has the key that it equals. Refused is what
        `GroupedRelease.to_dict` cannot write exactly, as infinities and numbers of thousands of digits.
    epsilon: budget of the whole release, all groups together, for a person with all records that one may own.
    priors, size_guess, public_total: as in `release`, alike for all groups, or a mapping from each key to its own.
    person: name of a column of texts, bytes, numbers, dates or times that says whose a record is. Of each person at
        most max_contributions records are kept, in at most max_groups groups, by a rule that looks at that person's
        records only; records without an ID are dropped. Without it both numbers are a promise of the caller's. Of a
        list or a column of objects each ID is read alone: numbers that are exactly equal are one, whatever types they
        are of, UUIDs and tuples of IDs are IDs, and objects of other classes are none. Times are one if they are
        exactly equal, in whatever units and zones.
    max_groups: groups in which one person may have records, at least 1.
    unknown: what becomes of records of no public key: left out ("drop"), or a further group with the key "other".
    max_contributions: records that one person may own in the whole table, at least max_groups, which is the default.
        Under "add-remove" each group's release gives every record epsilon / max_contributions: the same as with one
        group for a person who owns one record, and epsilon / k for one who owns one in each of k groups.
    adjacency: what neighbouring tables differ in: a person's records more or less, or replaced, which may move them to
        other groups. The size of the whole table is then public, but no group's; each record costs two changes, and is
        given half as much.
    The other arguments: as in `release`. rng: one for all groups, in the order of keys.

    Returns a `GroupedRelease`, with a `Release` for each key, with or without records. Raises `ValueError` or
    `TypeError` naming the public argument at fault, before the data are touched; no record raises, warns, or adds a
    row. Guarantees epsilon-differential privacy of all groups together under `adjacency`; a ledger is charged once.

    >>> import pq
    >>> staff = {"team": ["a", "b", "a", "a", "?"], "age": [31.0, 45.0, 28.0, 39.0, 50.0]}
    >>> ages = pq.release_groups(staff, [0.5], by="team", value="age", keys=["a", "b", "c"], epsilon=1,
    ...                          priors=pq.Cauchy(40, 20), rng=1)
    >>> list(ages.releases), ages.releases["c"].values.shape
    (['a', 'b', 'c'], (1,))
    """
    groups = whole_number(max_groups, "max_groups", least=1)
    records = groups if max_contributions is None else whole_number(max_contributions, "max_contributions", least=1)
    if records < groups:
        raise ValueError(f"max_contributions must be at least max_groups: in {groups} groups one owns {groups} records")
    check_choice(adjacency, Adjacency, "adjacency")
    check_choice(unknown, Unknown, "unknown")
    checked_texts(by=by, value=value, person="" if person is None else person)
    column = GroupedColumn.of(
        open_table(table), value=value, by=by, keys=keys, person=person, step=grid_step(grid), others=unknown == "other"
    )
    given = _named(column, unknown)
    makers = [
        prepare(
            quantiles,
            epsilon=epsilon,
            priors=_of_group(priors, key, "priors"),
            mechanism=mechanism,
            size_guess=_of_group(size_guess, key, "size_guess"),
            public_total=_of_group(public_total, key, "public_total"),
            assume_smooth=assume_smooth,
            grid=grid,
            adjacency="add-remove",
            calibration=calibration,
            adaptation=adaptation,
            arity=arity,
            budget_power=budget_power,
            on_nan=on_nan,
            max_contributions=records * CHANGES[adjacency],
        )
        for key in given
    ]
    source, budget = Source(rng), makers[0].request.epsilon
    rho = None if ledger is None else max(maker.rho for maker in makers)
    charge(ledger, epsilon=budget, adjacency=adjacency, purpose=purpose, rho=rho)
    columns = column.read(records, groups)
    made = [fulfil(maker, counts, source) for maker, counts in zip(makers, columns, strict=True)]
    facts: dict[str, Any] = {"max_contributions": records, "max_groups": groups, "person": person, "unknown": unknown}
    return GroupedRelease(by, value, given, tuple(made), budget_float(budget), adjacency, **facts)


def _named(column: GroupedColumn, unknown: str) -> tuple[Any, ...]:
    """The keys of all groups in order, with that of the others."""
    assert column.keys is not None
    given = column.keys.given
    if unknown == "drop":
        return given
    if OTHER in given:
        raise ValueError(f"keys must not hold {OTHER!r}, the name of the group of other records")
    return (*given, OTHER)


def _of_group(fact: Any, key: Any, argument: str) -> Any:
    """A public fact of a group, from one for all groups or a mapping from keys."""
    if not isinstance(fact, Mapping):
        return fact
    if key not in fact:
        raise ValueError(f"{argument} must have something for each key: there is nothing for {key!r}")
    return fact[key]
