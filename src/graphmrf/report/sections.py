"""The sections of a report as HTML: one for each target, and the foot of the page."""

from html import escape

import numpy as np

from graphmrf.report import prose, tables
from graphmrf.report.charts import LISTED_COEFFICIENTS
from graphmrf.report.picture import LISTED_NODES, Picture
from graphmrf.report.rows import PredictionReport, TargetReport
from graphmrf.text import DASH, count, number, smoothing_level

OWN_FEATURES = ("lr", "lr-rp")
"""Methods whose coefficients are of a node's own features, and whose constant is where features are 0."""


def target_section(report: PredictionReport, position: int, picture: Picture) -> str:
    """Everything about one target, from the headline down."""
    target = report.targets[position]
    parts = [
        _lead(target, position),
        _maps(target, picture),
        _shares(target),
        _comparison(target),
        f'<div class="pair">{_alpha(target)}{_distribution(target)}</div>',
        _uncertain(report, target),
        _coefficients(target),
        _effects(target),
    ]
    name = f"target-{position}"
    return (
        f'<section class="target" id="{name}" data-target="{position}" aria-labelledby="head-{position}">'
        f"{''.join(parts)}</section>"
    )


def tabs(report: PredictionReport) -> str:
    """Links to the targets; empty for a single one."""
    if len(report.targets) == 1:
        return ""
    links = "".join(
        f'<a role="tab" href="#target-{i}" aria-controls="target-{i}">{escape(target.name)}</a>'
        for i, target in enumerate(report.targets)
    )
    return f'<nav class="tabs" role="tablist" aria-label="Targets">{links}</nav>'


def about(report: PredictionReport) -> str:
    """Notes on the data, the command and the version."""
    parts = []
    if report.notes:
        lines = "".join(f"<li>{escape(note)}</li>" for note in report.notes)
        parts.append(f"<h3>Notes on the data</h3><ul>{lines}</ul>")
    if report.command:
        parts.append(f"<h3>The command that made this page</h3><pre>{escape(report.command)}</pre>")
    made_by = f"graphmrf {report.version}".strip()
    parts.append(f'<p class="fine">Made by {escape(made_by)}. This file works offline and loads nothing.</p>')
    return "".join(parts)


def _lead(target: TargetReport, position: int) -> str:
    sentences = [prose.accuracy(target), target.carries, prose.check(target)]
    first, *rest = [escape(sentence) for sentence in sentences if sentence] or [""]
    lede = " ".join([f"<strong>{first}</strong>", *rest]) if first else ""
    headline = escape(prose.headline(target))
    return f'<h2 id="head-{position}">{headline}</h2><p class="lede">{lede}</p>{_facts(target)}'


def _facts(target: TargetReport) -> str:
    row = target.chosen
    facts = {
        "Predicted": count(int(np.sum(~target.observed)), "node"),
        "Observed": count(int(np.sum(target.observed)), "node"),
        "Method": prose.method_name(target.method),
        "Smoothing level α": smoothing_level(target.alpha),
        "R² in cross-validation": number(row.r2, 3) if row else DASH,
    }
    return _definitions({name: fact for name, fact in facts.items() if fact != DASH})


def _definitions(facts: dict[str, str]) -> str:
    pairs = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(fact)}</dd></div>" for name, fact in facts.items())
    return f'<dl class="facts">{pairs}</dl>'


def _maps(target: TargetReport, picture: Picture) -> str:
    name = escape(target.name)
    drawings = _map("value_map", f"{name}: observed where known, predicted elsewhere", f"Graph coloured by {name}")
    if target.std is not None:
        drawings += _map("std_map", "Standard deviation of the prediction", f"Graph coloured by uncertainty of {name}")
    fine = " ".join([*picture.dropped, "Colours run from the 1st to the 99th percentile."])
    return (
        '<div class="card"><div class="card-head"><h3>The graph</h3>'
        '<form class="find"><label>Find a node <input name="id" type="search" autocomplete="off" '
        'placeholder="its id, then Enter"></label></form></div>'
        f"<p>Point at a node, or tap it, to see its value{' in both drawings' * (target.std is not None)}."
        '<span class="mouse"> Drag to move; the buttons above a drawing zoom.</span></p>'
        '<ul class="legend"><li><i></i>observed</li><li><i class="round"></i>predicted</li></ul>'
        f'<div class="maps">{drawings}</div>'
        f'<p class="readout" role="status"></p><p class="fine">{escape(fine)}</p></div>'
    )


def _map(figure: str, title: str, label: str) -> str:
    hint = f"{label}; the table of uncertain predictions lists values"
    plot = f'<div class="plot map" data-figure="{figure}" role="img" aria-label="{hint}"></div>'
    return f"<figure><h4>{title}</h4>{plot}</figure>"


def _chart(figure: str, label: str) -> str:
    return f'<div class="plot" data-figure="{figure}" role="img" aria-label="{escape(label)}"></div>'


def _card(title: str, text: str, content: str) -> str:
    return f'<div class="card"><h3>{escape(title)}</h3><p>{escape(text)}</p>{content}</div>'


def _comparison(target: TargetReport) -> str:
    if not target.comparison:
        return ""
    text = (
        "R² is the share of the variation between nodes that a method explains where it has not seen the outcome: "
        "1 is perfect, 0 is no better than the average. A dot is one fold of the cross-validation."
    )
    chart = ""
    if any(np.isfinite(row.r2) for row in target.comparison):
        chart = _chart(
            "comparison", f"Bars of the accuracy of each method for {target.name}; the table beside has them"
        )
    return _card("Which method works here", text, f'<div class="split">{chart}{tables.method_rows(target)}</div>')


def _shares(target: TargetReport) -> str:
    if not target.shares:
        return ""
    text = (
        "Share of the variation of the known values by the kind of effect that predicts it, when each value is "
        "predicted from all others by a field that was tuned to all of them; so noise may be less than R² in "
        "cross-validation leaves. What several effects say alike is divided among them. The shares add up to 100 %."
    )
    return _card("What carries the prediction", text, tables.share_rows(target))


def _alpha(target: TargetReport) -> str:
    if not target.curves:
        return ""
    text = (
        "The smoothing level α says how far a value reaches along the edges: 0 ignores the edges, close to 1 averages "
        "over wide neighbourhoods. Shaded: from the worst to the best fold. Circled: the level that was kept."
    )
    best = f"Accuracy against smoothing level for {target.name}; chosen level {smoothing_level(target.alpha)}"
    return _card("Accuracy against smoothing", text, _chart("alpha_curves", best))


def _distribution(target: TargetReport) -> str:
    text = (
        "Share of nodes in each range of values. Predictions usually spread less than outcomes, "
        "because each is the average of what is plausible."
    )
    label = f"Histogram of observed and predicted values of {target.name}"
    return _card("Observed and predicted values", text, _chart("distribution", label))


def _uncertain(report: PredictionReport, target: TargetReport) -> str:
    content = tables.uncertain_nodes(report, target)
    if not content:
        return ""
    hidden = int(np.sum(~target.observed))
    text = (
        f"The {min(LISTED_NODES, hidden)} of {hidden:,} predictions with the largest standard deviation. "
        "Few neighbours, or few observed ones among them, make a prediction uncertain. "
        "Choose a column to sort by it, a row to see the node in the drawings."
    )
    return _card("Most uncertain predictions", text, content)


def _coefficients(target: TargetReport) -> str:
    rows = target.coefficients
    if rows is None or not len(rows.names):
        return ""
    shown, total = min(len(rows.names), LISTED_COEFFICIENTS), len(rows.names)
    which = f"The {shown} largest of {total:,} coefficients" if shown < total else "The coefficients"
    own = target.method in OWN_FEATURES
    where = "at the node" if own else "throughout a neighbourhood"
    text = (
        f"{which}: the change in the prediction when a feature rises by one unit {where} and the "
        "others stay as they are. They depend on the units of the features."
    )
    chart = _chart("coefficients", f"Bars of the coefficients for {target.name}; the table beside has them")
    name = "Constant term" if own else "Where all features are average"
    constant = "" if rows.intercept is None else f'<p class="fine">{name}: {number(rows.intercept)}</p>'
    content = f'<div class="split">{chart}{tables.coefficient_rows(rows)}</div>{constant}'
    return _card("What the features contribute", text, content)


def _effects(target: TargetReport) -> str:
    rows = target.effects
    if rows is None or not len(rows.names):
        return ""
    shown, total = min(len(rows.names), LISTED_COEFFICIENTS), len(rows.names)
    which = f"The {shown} clearest of {total:,} features" if shown < total else "Linear effects"
    unit = f"of the outcome after its transform ({rows.transform})" if rows.transform else "in units of the outcome"
    text = (
        f"{which}: the change of the prediction, {unit}, when a feature rises by one of its units at the node itself, "
        "in the weighted sum of its neighbours or of theirs, or smoothed over its neighbourhood (distant: that part of "
        "it which is three and more steps away); ± the standard error. Nonlinear and local effects come on top."
    )
    content = tables.effect_rows(rows, LISTED_COEFFICIENTS)
    return _card("What the features contribute", text, content) if content else ""
