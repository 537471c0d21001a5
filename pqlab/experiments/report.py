"""The tables and pictures of a reproduction as one HTML file that needs nothing else.

Truth ring, like all experiments: means of errors that only evaluation may see.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import polars as pl
from matplotlib import rc_context
from matplotlib.figure import Figure as Canvas

from pq.show import plots
from pqlab.experiments import public_private, static
from pqlab.experiments.figures import Figure, Job
from pqlab.experiments.sequential_tasks import METHODS

LABELS = {**{k: v.label for k, v in static.METHODS.items()}, **public_private.METHODS, **METHODS}
CURVES = ("variant", "m", "method", "epsilon", "mixture", "day_block", "first_day", "last_day")
AXES = {
    "m": ("number of quantiles", "linear"),
    "epsilon": ("epsilon", "log"),
    "mixture": ("part of the records from the other population", "linear"),
    "day_block": ("day", "linear"),
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: #222 }}
table {{ border-collapse: collapse; font-size: 0.85rem }} td, th {{ padding: 0.1rem 0.6rem; text-align: right }}
th {{ border-bottom: 1px solid #999 }} td.text {{ text-align: left }}
svg {{ max-width: 100%; height: auto }} code {{ font-size: 0.85rem }}
</style></head><body>
{body}
</body></html>
"""


def summary(rows: pl.DataFrame) -> pl.DataFrame:
    """Means over trials with standard errors, by all that tells rows apart but the trial, in the rows' order."""
    known = [name for name in CURVES if rows[name].null_count() < len(rows)]
    trials = pl.len()
    return rows.group_by(["data", *known], maintain_order=True).agg(
        trials.alias("trials"),
        *(
            statistic
            for name in ("max_gap", "median_gap")
            if rows[name].null_count() < len(rows)
            for statistic in (
                pl.col(name).mean(),
                (pl.col(name).std() / trials.cast(pl.Float64).sqrt()).alias(f"{name}_error"),
            )
        ),
    )


def draw(figure: Figure, job: Job, means: pl.DataFrame) -> str:
    """The picture of one data set of a figure: a vector picture with words for who does not see it."""
    panels = _panels(figure, means)
    style: Any = plots.STYLE
    with rc_context(style):
        canvas = Canvas(figsize=(5.5 * len(panels), 4.6))
        axes = canvas.subplots(1, len(panels), squeeze=False, sharey=figure.along != "m")[0]
        for ax, (title, value, part) in zip(axes, panels, strict=True):
            ax.set_title(f"{job.label}{title}")
            _curves(ax, figure.along, value, part)
        canvas.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
        words = f"{figure.title}, {job.label}: {' and '.join(title.strip(', ') or 'one panel' for title, *_ in panels)}"
        return plots.picture(canvas, words)


def _panels(figure: Figure, means: pl.DataFrame) -> list[tuple[str, str, pl.DataFrame]]:
    """Title, column and rows of each panel: a panel for each variant and number of quantiles, of the mean over days and
    for some of the median."""
    apart = [name for name in ("variant", *(["m"] if figure.along != "m" else [])) if name in means.columns]
    chosen = means
    if "day_block" in means.columns:
        over_time = figure.along == "day_block"
        chosen = means.filter((pl.col("day_block") >= 0) if over_time else (pl.col("day_block") == -1))
    return [
        ("".join(f", {_fact(name, part[name][0])}" for name in apart) + _budget(figure, part) + words, value, part)
        for part in (chosen.partition_by(apart, maintain_order=True) if apart else [chosen])
        for value, words in averages(figure).items()
    ]


def averages(figure: Figure) -> dict[str, str]:
    """The columns that a figure draws, and of what they are the average, where there are several."""
    if figure.label.startswith("worldnews"):
        return {"max_gap": ", mean over data sets", "median_gap": ", median over data sets"}
    return {"max_gap": ""}


def _fact(name: str, value: Any) -> str:
    return str(value) if name == "variant" else f"{name} = {value}"


def _budget(figure: Figure, part: pl.DataFrame) -> str:
    """The budget, where all curves have the same."""
    one = figure.along != "epsilon" and part["epsilon"].n_unique() == 1
    return f", epsilon {part['epsilon'][0]:g}" if one else ""


def _curves(ax: Any, along: str, value: str, means: pl.DataFrame) -> None:
    """One curve for each method and, where they are not the axis, each epsilon."""
    apart = ["method", *(["epsilon"] if along != "epsilon" and means["epsilon"].n_unique() > 1 else [])]
    for key, part in means.partition_by(apart, as_dict=True, maintain_order=True).items():
        facts = dict(zip(apart, key, strict=True))
        label = ", ".join([LABELS[str(key[0])], *(f"{k} = {v:g}" for k, v in facts.items() if k != "method")])
        style = plots.style_of(str(key[0]))
        if "epsilon" in facts:
            style["linestyle"] = plots.DASHES.get(facts["epsilon"], "-.")
        x = (part["first_day"] + part["last_day"]) / 2 if along == "day_block" else part[along]
        plots.band(ax, x.to_numpy(), part[value].to_numpy(), part[f"{value}_error"].to_numpy(), label=label, **style)
    name, scale = AXES[along]
    # Gaps of two methods differ by a factor; below one record there is nothing to tell apart.
    ax.set(xlabel=name, ylabel="maximum gap (records)", xscale=scale)
    ax.set_yscale("symlog", linthresh=1)
    ax.set_ylim(bottom=0)


def table(frame: pl.DataFrame) -> str:
    """A data frame as an HTML table."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in frame.columns)
    body = "\n".join("<tr>" + "".join(_cell(value) for value in row) + "</tr>" for row in frame.iter_rows())
    return f"<table><tr>{head}</tr>\n{body}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return f'<td class="text">{html.escape(value)}</td>'
    return "<td></td>" if value is None else f"<td>{value:.5g}</td>"


def facts(pairs: Mapping[str, Any]) -> str:
    """Names and values as a small table."""
    rows = (f'<tr><th>{html.escape(k)}</th><td class="text">{html.escape(str(v))}</td></tr>' for k, v in pairs.items())
    return "<table>" + "\n".join(rows) + "</table>"


VARIANTS = {
    "paper": "the paper's calibration",
    "sharp": "the sharp calibration, for records added or removed as private with less noise",
    "sharp, grid 1": "the sharp calibration, and outputs in whole years",
    "grid": "the sharp calibration, and outputs on the grid of the data",
    "level": "the sharp calibration on one level, without a tree: each quantile is looked for among all records",
}

SHIFT = "14_public_private_shift", "Where our experiments differ from the paper's"
DAYS = "08b_sequential_epsilon", "Where our runs differ from the paper's"
DIFFERENCES = {  # the page and the heading under which it is listed
    "mplots": ("03_many_quantiles", "The paper's first figure"),
    "pubpri-logepsplots": SHIFT,
    "mixplots": SHIFT,
    "timeplots": DAYS,
    "online-logepsplots": DAYS,
    "worldnews-logepsplots": DAYS,
}


def story(figure: Figure, tables: Sequence[pl.DataFrame]) -> list[str]:
    """What the paper says of its figure, what became of that in the full experiments, and what the panels are."""
    from proofs_checks.engine.claims import load_rows

    row = load_rows()[f"fig:{figure.label}"]
    out = [f"<p><b>The paper says:</b> {html.escape(row['paper'])}</p>"]
    found = "; ".join(row[key] for key in ("corrected", "note") if row.get(key))
    out.append(f"<p><b>Verdict of the full experiments:</b> {row['verdict']}. {html.escape(found)}</p>")
    panels = {str(name) for means in tables if "variant" in means.columns for name in means["variant"].unique()}
    known = [f"{name}: {VARIANTS[name]}" for name in VARIANTS if name in panels]
    name, heading = DIFFERENCES[figure.label]
    listed = f"In what these runs differ from the paper's, by whatever calibration: page {name}, “{heading}”."
    return [*out, *([f"<p>Panels: {'; '.join(known)}.</p>"] if known else []), f"<p>{html.escape(listed)}</p>"]


def section(figure: Figure, parts: Sequence[tuple[Job, pl.DataFrame]], skipped: Sequence[tuple[Job, str]]) -> str:
    """A figure: its pictures, its tables, and what of it was left out for lack of data."""
    out = [f'<h2 id="{figure.label}">{html.escape(figure.title)} <small><code>fig:{figure.label}</code></small></h2>']
    out += story(figure, [means for _, means in parts])
    for job, reason in skipped:
        out.append(f"<p><b>{html.escape(job.label)}</b> was left out: {html.escape(reason)}</p>")
    for job, means in parts:
        out.append(f"<div>{draw(figure, job, means)}</div>")
        name = f"{html.escape(job.label)}: {len(means)} means"
        out.append(f"<details><summary>{name}</summary>{table(means)}</details>")
    return "\n".join(out)


def page(title: str, sections: Iterable[str]) -> str:
    """The whole report."""
    return PAGE.format(title=html.escape(title), body="\n".join([f"<h1>{html.escape(title)}</h1>", *sections]))
