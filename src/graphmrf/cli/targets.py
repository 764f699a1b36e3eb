"""Columns of a command: what is predicted, and from what; options and columns checked, and what is noted about them."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types
from scipy.stats import skew

from graphmrf import datasets
from graphmrf._typing import Floats
from graphmrf.cli.inputs import Memory
from graphmrf.cli.options import MethodOptions, TargetOptions
from graphmrf.cli.results import ABOVE, CLASS_COLUMNS, OUTPUT_COLUMNS, SMOOTHED
from graphmrf.comparison import AUTO, EXCEEDANCE, SUGGESTIONS, Bounds, Settings, choose
from graphmrf.comparison.candidates import DEFAULT, ENOUGH, Values
from graphmrf.comparison.prediction import GROUP_COLUMNS
from graphmrf.datasets import AttributedGraph, Features
from graphmrf.datasets.columns import FILLED, check_agreement, is_dates, is_text
from graphmrf.datasets.dialect import is_formatted_number
from graphmrf.datasets.table_files import and_more, listing
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import Labels, check_classes, read_labels
from graphmrf.estimators.methods import Method
from graphmrf.estimators.rows import COUNTED, TAKERS, LongTable, RowError, propose_likelihood, read_rows
from graphmrf.field import POSITIVE
from graphmrf.graph import Graph
from graphmrf.linalg.limits import LIMITS
from graphmrf.selection import search_time_weight
from graphmrf.text import count, joined

_KNOWN = {"exposure": "--exposure", "trials": "--trials", "std": "--std", "weight": "--value-weight"}
"""Option of every column that is known of observations, by its name in `fit`."""
_OPTIONS = {"cv": "--folds"} | {
    name: f"--{name.replace('_', '-')}"
    for name in (
        "alpha",
        "interval",
        "method",
        "transform",
        "conformal",
        "at_least",
        "at_most",
        "integer",
        "likelihood",
    )
}
"""Option of every setting, by its name in messages."""
_SETTING = re.compile(r"^[a-z_]+|\b(method|likelihood)(?= \w)|\bat_most(?= )")
# Names of columns that may be the exposure of counts, or the trials of successes.
_SIZES = {
    "exposure": re.compile(r"(.*_)?(population|pop|people|births|exposure|expected|person_years|at_risk|e)", re.I),
    "trials": re.compile(r"(.*_)?(trials|denominator|sample_size|n)", re.I),
}
# Ends of the names of columns that state how an outcome was measured.
_MEASURED = re.compile(r"(.*_)?(se|stderr|moe|n|sd|variance|denominator|population|sample_size|standard_error)", re.I)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is predicted, from what and how."""

    table: AttributedGraph
    targets: Mapping[str, Values]
    features: Features
    settings: Mapping[str, Settings]  # of every target
    methods: Sequence[Method]
    groups: pd.Series | None  # group of every node
    weights: Floats | None  # weight of every node in the mean of its group
    warnings: Sequence[str]  # what to know before a long fit
    notes: Sequence[str]  # what was made of the columns


def read_problem(table: AttributedGraph, asked: TargetOptions, settings: Settings) -> Problem:
    """Return what is asked of a table, every column checked."""
    groups, weights = _group_of_nodes(table, asked.group), _group_weight(table, asked.group_weight, asked.group)
    targets = _read_targets(table, asked, settings)
    _check_likelihood(table, targets, asked.known, settings)
    features = datasets.features(table, targets=tuple(targets), ignore=asked.no_features)
    table, known = _known_values(table, asked.known)
    numbers = not all(isinstance(y, Labels) for y in targets.values())
    settings, warnings = within_memory(table.graph, features.X.shape[1], settings, numbers=numbers)
    targets, observed = _observed(table, targets, asked.known, known, settings)
    table = _with_time_weight(table, targets, features, observed)
    methods = choose(settings.methods, n_features=features.X.shape[1])
    notes = (
        *table.notes,
        *_target_notes(targets, observed, named=bool(asked.target)),
        *_likelihood_notes(table, targets, features.names, observed),
        *_feature_notes(targets, features, methods),
        *group_notes(groups),
    )
    slow = () if settings.order else _slow_fits(targets, methods)
    return Problem(table, targets, features, observed, methods, groups, weights, (*warnings, *slow), notes)


def settings_of(how: MethodOptions, asked: TargetOptions, *, stoppable: bool) -> Settings:
    """Return the checked settings of a prediction; errors name the option."""
    wanted = {"totals of groups": asked.group, SUGGESTIONS: asked.suggest, EXCEEDANCE: asked.above is not None}
    if asked.above is not None and not np.isfinite(asked.above):
        raise InvalidInputError(f"--above must be a finite number, got {asked.above}")
    method = _method_for(how.likelihood, how.method, asked)
    with _named_by_option():
        return Settings(
            methods=(method,),
            alpha=how.alpha,
            cv=how.folds,
            random_state=how.seed,
            transform=how.transform,
            conformal=how.conformal,
            needs=tuple(name for name, each in wanted.items() if each),
            level=how.interval,
            bounds=Bounds(how.at_least, how.at_most, how.integer),
            likelihood=how.likelihood,
            order=asked.order,
            stoppable=stoppable,
        )


def _method_for(likelihood: str, method: str, asked: TargetOptions) -> str:
    """Return the method of a likelihood, the field where more is known of observations than their values."""
    flags = [_KNOWN[option] for option in asked.known]
    for option in asked.known:
        if likelihood not in (AUTO, *TAKERS[option]):  # auto is replaced by what suits the target, see below
            raise InvalidInputError(
                f"{_KNOWN[option]} is for --likelihood {' or '.join(TAKERS[option])}, got {likelihood}; drop either"
            )
    if len(flags) > 1:
        raise InvalidInputError(f"{' and '.join(flags)} exclude each other; drop one of them")
    flags += ["--repeated"] * asked.repeated + ["--ordered"] * bool(asked.order)
    if flags and method not in (AUTO, DEFAULT):
        raise InvalidInputError(f"{flags[0]} is for --method {DEFAULT}, got {method}; drop one of them")
    return DEFAULT if (flags or likelihood != AUTO) and method == AUTO else method


def _check_likelihood(
    table: AttributedGraph, targets: Mapping[str, Values], known: Mapping[str, str], settings: Settings
) -> None:
    """Raise where a column is known of observations that needs another likelihood, with the one that suits."""
    for option, column in known.items():
        if settings.likelihood not in TAKERS[option]:
            found = [_proposal(table, name, y, option, column) for name, y in targets.items()]
            remedy = next(filter(None, found), f"drop {_KNOWN[option]}, as the target has no counts")
            raise InvalidInputError(
                f"{_KNOWN[option]} is for --likelihood {' or '.join(TAKERS[option])}, got {settings.likelihood}; "
                f"{remedy}"
            )


def _proposal(table: AttributedGraph, name: str, y: Values, option: str, column: str) -> str:
    """Return which options suit a target with a column of exposures or trials, and why; empty for none."""
    if isinstance(y, Labels):
        return ""
    likelihood, why = propose_likelihood(table.observations(name), **{option: table.observations(column)})
    added = f"add --likelihood {likelihood} {_KNOWN[option]} {column}"
    return f"{name} has {why}: {added}" if likelihood in COUNTED else ""


def _likelihood_notes(
    table: AttributedGraph, targets: Mapping[str, Values], features: Sequence[str], observed: Mapping[str, Settings]
) -> Iterator[str]:
    """Yield which likelihood a column of counts suggests, by the name of a feature, and that an exposure is 1."""
    for name, y in targets.items():
        settings = observed[name]
        if isinstance(y, Labels):
            continue
        if settings.likelihood in TAKERS["exposure"] and "exposure" not in settings.known:
            yield f"{name}: every count has an exposure of 1; name a column of exposures with --exposure"
        able = settings.plain and settings.likelihood == AUTO and {AUTO, DEFAULT} & {*settings.methods}
        sizes = (
            (option, column)
            for option, pattern in _SIZES.items()
            for column in features
            if pattern.fullmatch(column) and _may_count(table.observations(name), table.observations(column), option)
        )
        for option, column in sizes if able else ():
            proposal = _proposal(table, name, y, option, column)
            if proposal:
                yield f"{proposal}, if it is what the counts are of"
                break


def _may_count(y: Floats, size: Floats, option: str) -> bool:
    """Return whether a column can be the exposure or the trials of a target."""
    known = ~np.isnan(y)
    least = y[known] if option == "trials" else 0.0
    return bool((size[known] >= least).all() and (size > 0).all() and y[known].max(initial=0.0) > 1.0)


@contextmanager
def _named_by_option() -> Iterator[None]:
    """Let errors that begin with the name of a setting begin with its option instead."""
    try:
        yield
    except InvalidInputError as error:
        raise InvalidInputError(_by_option(str(error))) from error


def _by_option(problem: str) -> str:
    return _SETTING.sub(lambda found: _OPTIONS.get(found[0], found[0]), problem)


def _known_values(table: AttributedGraph, columns: Mapping[str, str]) -> tuple[AttributedGraph, dict[str, Floats]]:
    """Return what is known of observations, and the table with a note where a panel carries it to rows it lacks."""
    found, notes = {option: table.observations(column) for option, column in columns.items()}, []
    for option in {"exposure", "trials"} & columns.keys():
        column, given = columns[option], found[option]
        found[option] = table.carried_forward(given)
        if added := int((np.isnan(given) & ~np.isnan(found[option])).sum()):
            notes.append(f"{column} is carried forward from earlier times in {count(added, 'row')} that the file lacks")
        missing = np.flatnonzero(np.isnan(found[option]))
        if missing.size:
            raise InvalidInputError(
                f"{table.row_place(missing[0])}, column {column}: every node needs a number, also where the target is "
                "empty, got an empty cell; fill it, or leave out the node"
            )
    return replace(table, notes=(*table.notes, *notes)), found


def _observed(
    table: AttributedGraph,
    targets: Mapping[str, Values],
    columns: Mapping[str, str],
    known: Mapping[str, Floats],
    settings: Settings,
) -> tuple[dict[str, Values], dict[str, Settings]]:
    """Return targets and settings with what is known of observations, all checked row by row.

    Of several observations of a node the target is the mean.
    """
    n, made, found = table.graph.n_nodes, dict(targets), {}
    for name, y in targets.items():
        rows, of_nodes = None, known
        if not isinstance(y, Labels):
            nodes = np.arange(n) if table.rows is None else table.rows.index.to_numpy()
            rows = LongTable(nodes, table.observations(name), known)
            if known or settings.likelihood != AUTO or rows.repeats:
                _check_rows(table, settings.likelihood, {"y": name, **columns}, rows)
            if table.rows is not None:
                made[name], of_nodes = rows.means(n)
        with _named_by_option():
            found[name] = replace(settings, known=of_nodes, rows=rows if rows is not None and rows.repeats else None)
    return made, found


def _check_rows(table: AttributedGraph, likelihood: str, columns: Mapping[str, str], rows: LongTable) -> None:
    """Raise where an observation breaks a rule of its likelihood; the message names row and column of the file."""
    try:
        read_rows(likelihood, table.graph, rows.nodes, rows.y, rows.known)
    except RowError as error:
        rule = error.at
        for option, flag in _KNOWN.items():
            rule = rule.replace(f"{option}=", flag)
        column = columns.get(error.option, columns["y"])
        raise InvalidInputError(f"{table.row_place(error.row)}, column {column}: {rule}") from error


def _read_targets(table: AttributedGraph, asked: TargetOptions, settings: Settings) -> dict[str, Values]:
    """Return the columns to predict, as numbers or classes: those named, else the only numeric one with empty cells."""
    names = tuple(dict.fromkeys(asked.target or ())) or (only_target(table, asked.no_features),)
    for name in names:
        other = "--ignore" if name in asked.no_features else "--group" if name == asked.group else ""
        if other:
            raise InvalidInputError(f"'{name}' is both --target and {other}; drop one of them")
    smoothed = asked.std is not None or asked.repeated
    how = {"classify": asked.has_classes, "smoothed": smoothed}
    if asked.repeated:
        _check_repeated(table, names, asked, settings)
    targets = {name: _read_target(table, name, settings, **how) for name in names}
    for name, y in targets.items():
        _check_suggest(table, name, y, asked.suggest)
    if asked.group is not None and all(isinstance(each, Labels) for each in targets.values()):
        raise InvalidInputError(f"--group is for numbers, got classes in {listing(names)}; leave out --group")
    results = {*OUTPUT_COLUMNS, *CLASS_COLUMNS, *SMOOTHED, ABOVE}
    made = results if len(names) == 1 else {f"{name}_{result}" for name in names for result in results}
    if taken := [key for key in table.keys if key in made]:
        kind = "id" if taken[0] == table.id else "time"
        raise InvalidInputError(f"the {kind} column '{taken[0]}' has the name of a result; rename it in {table.path}")
    return targets


def _check_repeated(table: AttributedGraph, names: Sequence[str], asked: TargetOptions, settings: Settings) -> None:
    """Raise where several rows of a node have no meaning."""
    classes = [name for name in names if asked.has_classes or (name in table.frame and is_category(table.frame[name]))]
    if classes:
        raise InvalidInputError(f"--repeated is for numbers, got classes in {listing(classes)}; keep one row per node")
    if asked.group is not None and settings.likelihood in COUNTED:
        raise InvalidInputError("--group adds up one count of each node, got --repeated; sum the rows of a node first")


def _group_of_nodes(table: AttributedGraph, column: str | None) -> pd.Series | None:
    """Return the group of every node, an empty cell being in none; None where no column is named."""
    if column is None:
        return None
    table.require(column, option="--group")
    check_agreement(table, [column])
    groups = table.frame[column].reset_index(drop=True)
    if groups.isna().all():
        raise InvalidInputError(f"{table.path}, column {column}: every cell is empty, so there is no group; fill some")
    if column in GROUP_COLUMNS:
        raise InvalidInputError(f"the column of groups '{column}' has the name of a result; rename it in {table.path}")
    return groups


def _group_weight(table: AttributedGraph, column: str | None, group: str | None) -> Floats | None:
    """Return the weights of nodes in means of groups; None for equal ones."""
    if column is None:
        return None
    if group is None:
        raise InvalidInputError("--group-weight is for the means of groups; name their column with --group")
    weight = table.outcome(column)
    check_agreement(table, [column])
    bad = np.flatnonzero(~(weight >= 0))
    if bad.size:
        found = "none" if np.isnan(weight[bad[0]]) else f"{weight[bad[0]]:g}"
        raise InvalidInputError(
            f"{table.path}, column {column}: weights must be 0 or more, got {found} for {table.labels[bad[0]]} "
            f"({bad.size} such rows in all); fill them in"
        )
    return weight


def group_notes(groups: pd.Series | None) -> list[str]:
    """Return that some nodes are in no group, so that totals of groups do not add up to that of all nodes."""
    outside = 0 if groups is None else int(groups.isna().sum())
    return (
        []
        if groups is None or not outside
        else [f"{count(outside, 'node')} without a {groups.name}: its cell is empty"]
    )


def only_target(table: AttributedGraph, ignore: Sequence[str]) -> str:
    """Return the only numeric column with empty cells; raise where there is none, or more than one to choose from."""
    frame = table.frame.drop(columns=[*table.keys, *(name for name in ignore if name in table.frame)])
    empty = frame.loc[:, frame.isna().any() & frame.notna().any()]
    found = empty.loc[:, [_means_numbers(column) for _, column in empty.items()]]
    if found.shape[1] == 1:
        return str(found.columns[0])
    if found.shape[1] > 1:
        raise InvalidInputError(_which(table, found))
    for name, column in frame.items():
        if is_text(column) and _means_numbers(column):
            table.outcome(str(name))
    words = [name for name, column in empty.items() if is_category(column)]
    remedy = f"or classify a column of text with --target {words[0]}" if words else "and name the column with --target"
    raise InvalidInputError(
        f"nothing to predict: no numeric column of {table.path} has an empty cell; empty the cells to predict, {remedy}"
    )


def _which(table: AttributedGraph, found: pd.DataFrame) -> str:
    """Ask which of several columns to predict, the emptiest first."""
    empty = found.isna().sum().sort_values(ascending=False, kind="stable")
    listed = [f"'{name}' ({n:,} of {len(found):,} cells empty)" for name, n in empty.items()]
    return (
        f"{table.path}: {len(listed)} numeric columns have empty cells, {and_more(listed)}; name what to predict, such "
        f"as --target {empty.index[0]} (repeatable): the others are features then, and their empty cells are filled"
    )


def _means_numbers(column: pd.Series) -> bool:
    """Return whether a column has numbers, or mostly numbers: a stray word in it is then an error, not a category."""
    if types.is_numeric_dtype(column) or not is_text(column):
        return types.is_numeric_dtype(column)
    return 0.5 < _share_of_numbers(column) < 1


def read_forecast(table: AttributedGraph, target: str, suggest: int) -> Floats:
    """Return the numbers of a column whose accuracy is to be forecast; raise where that is not possible."""
    table.require(target, option="--target")
    if is_category(table.frame[target]):
        raise InvalidInputError(
            f"{table.path}, column {target}: foresee is for numbers, and this column has classes; choose another "
            "column with --target, or classify this one with graphmrf predict"
        )
    y = table.outcome(target)
    left, known = int(np.isnan(y).sum()), y[~np.isnan(y)]
    if left < 2 or known.size < 2 or np.ptp(known) == 0:
        raise InvalidInputError(
            f"{table.path}, column {target}: {known.size} known and {left} empty cells; give at least two "
            "different values, and leave at least two cells to predict empty"
        )
    _check_suggest(table, target, y, suggest)
    return y


def _check_suggest(table: AttributedGraph, name: str, y: Values, suggest: int) -> None:
    left = int(np.sum(~y.known if isinstance(y, Labels) else np.isnan(y)))
    if suggest > left:
        raise InvalidInputError(
            f"{table.path}, column {name}: --suggest must be at most {left}, the nodes without a label, got {suggest}"
        )


def is_category(column: pd.Series) -> bool:
    """Return whether a column has classes: true and false, or words, most of which are not numbers.

    Each word counts once: many ``?`` among numbers are not a class, but cells to be emptied.
    """
    kind = types.infer_dtype(column, skipna=True)
    return kind in ("boolean", "categorical") or (kind == "string" and _share_of_numbers(column) <= 0.5)


def _share_of_numbers(column: pd.Series) -> float:
    """Return the share of numbers among the different cells of a column of text."""
    return float(pd.to_numeric(column.dropna().drop_duplicates(), errors="coerce").notna().mean())


def _read_target(table: AttributedGraph, name: str, settings: Settings, *, classify: bool, smoothed: bool) -> Values:
    """Return the numbers of a column, or the classes of one of words."""
    table.require(name, option="--target")
    if is_category(table.frame[name]):
        return _read_classes(table, name, table.frame[name], settings.order)
    y = table.outcome(name)
    if classify:
        words = pd.Series(y).map(lambda value: f"{value:g}", na_action="ignore")
        return _read_classes(table, name, words, settings.order)
    problem = _problem(y, settings.transform, smoothed=smoothed) or _by_option(settings.bounds.problem(y))
    if problem:
        raise InvalidInputError(f"{table.path}, column {name}: {problem}")
    return y


def _problem(y: Floats, transform: str, *, smoothed: bool) -> str:
    """Return why numbers cannot be learned from, and the remedy; empty where they can.

    `smoothed`: whether nodes with known values are predicted, too.
    """
    known = y[~np.isnan(y)]
    if known.size == y.size and not smoothed:
        return "nothing to predict, every node has a value; leave the cells to predict empty"
    if known.size == 0:
        return "no labelled node, every cell is empty; give the values that are known"
    if known.size == 1:
        return "a single labelled node is not enough to learn from; give at least two values"
    if np.ptp(known) == 0:
        return f"constant, all {known.size} known values are {known[0]:g}; there is nothing to learn"
    return "" if transform == "identity" else _transform_problem(known, transform)


def _transform_problem(known: Floats, transform: str, *, orders: int = 30) -> str:
    """Return why values cannot be transformed: over so many orders of magnitude, unseen ones determine the mean."""
    if transform in POSITIVE and known.min() <= 0:
        return f"--transform {transform} needs positive values, got {known.min():g}; use --transform yeo-johnson"
    sizes = np.abs(known[known != 0])
    if np.log10(sizes.max()) - np.log10(sizes.min()) > orders:
        return f"values from {sizes.min():g} to {sizes.max():g} in size are too skewed to transform; give logarithms"
    return ""


def _read_classes(table: AttributedGraph, name: str, column: pd.Series, order: Sequence[str]) -> Labels:
    try:
        _check_words(column)
        labels = read_labels(column, len(table.frame))
        _check_many(labels)
        check_classes(labels, 1)
        _check_order(order, [str(each) for each in labels.classes])
        if labels.known.all():
            raise InvalidInputError("nothing to predict, every node has a class; leave the cells to predict empty")
    except InvalidInputError as error:
        raise InvalidInputError(f"{table.path}, column {name}: {error}") from error
    return labels


def _check_order(order: Sequence[str], classes: Sequence[str]) -> None:
    """Raise where an order is given that does not name every class once."""
    if order and sorted(order) != sorted(classes):
        missing = [name for name in classes if name not in order]
        unknown = [name for name in order if name not in classes]
        finding = f"has {listing(unknown)}, a class of no known node" if unknown else "has a class twice"
        finding = f"lacks the class {listing(missing)}" if missing else finding
        raise InvalidInputError(
            f"--ordered {','.join(order)} {finding}; name each of {listing(classes)} once, from the lowest one on"
        )


def _check_words(column: pd.Series) -> None:
    """Raise where cells are dates, or numbers written with signs or separators."""
    if is_dates(column):
        raise InvalidInputError("contains dates; give numbers, such as days or years")
    text = column.dropna().astype(str).drop_duplicates()
    if column.dtype.kind != "b" and is_formatted_number(text):
        raise InvalidInputError(
            f"cells such as '{max(text, key=len)}' are not plain numbers; write 1080.5, with no other separator or "
            "sign, or words for classes"
        )


def columns_to_fill(
    table: AttributedGraph, ignore: Sequence[str], named: Mapping[str, str]
) -> tuple[pd.DataFrame, list[str]]:
    """Return the columns that have missing cells or help to fill them, in node order, and notes about others.

    Raises InvalidInputError if none of them has a missing cell, or one of those `named` by options is not among them.
    """
    names = datasets.features(table, ignore=ignore).names
    for name in named:
        table.require(name)
        if name not in names or is_category(table.frame[name]):
            raise InvalidInputError(
                f"{table.path}, column {name}: --likelihood and --size are for columns of numbers to fill, and this is "
                f"none of them; have {listing(names)}"
            )
    frame = pd.DataFrame({name: _numbers_or_classes(table, name) for name in names}, index=table.frame.index)
    if not frame.isna().any().any():
        raise InvalidInputError(
            f"{table.path}: nothing to fill, {listing(names) or 'no column'} "
            f"{'has' if len(names) < 2 else 'have'} a value in every row; leave the cells to fill empty"
        )
    left = [name for name in table.frame.columns if name not in (*names, *table.keys)]
    ids = pd.RangeIndex(len(frame)) if table.graph.ids is None else table.graph.ids
    return frame.set_axis(ids), [f"left as they are: {listing(left)}"] if left else []


def _numbers_or_classes(table: AttributedGraph, name: str) -> Any:
    cells = table.frame[name]
    return cells.astype(object).where(cells.notna(), None).to_numpy() if is_category(cells) else table.outcome(name)


def _check_many(labels: Labels, *, few: int = 10) -> None:
    """Raise where most labels of more than a few classes are one of their own, as numbers with a unit are."""
    known = int(labels.known.sum())
    if labels.classes.size > max(few, known / 2):
        raise InvalidInputError(
            f"{labels.classes.size} different texts, such as '{labels.classes[0]}', in {known} cells are too many for "
            "classes; write numbers without a unit, or merge classes"
        )


def _with_time_weight(
    table: AttributedGraph, targets: Mapping[str, Values], features: Features, observed: Mapping[str, Settings]
) -> AttributedGraph:
    """Return the table; a panel with the weight of steps in time that predicts the first target of numbers best.

    That of counts is found on their log rates.
    """
    numbers = {name: y for name, y in targets.items() if not isinstance(y, Labels)}
    if table.time is None or not numbers:
        return table
    name, y = next(iter(numbers.items()))
    settings = observed[name]
    known = settings.known or {}
    exposure = (
        known.get("exposure", np.ones(table.graph.n_nodes)) if settings.likelihood in TAKERS["exposure"] else None
    )
    graph = search_time_weight(
        table.graph, features.X, y, exposure=exposure, cv=settings.cv, random_state=settings.random_state
    )
    product = graph.product
    assert product is not None
    note = (
        f"a step in time weighs {product.weight:g} times as much as all neighbours at the same time, "
        "which predicts held-out values best"
    )
    return replace(table, graph=graph, notes=(*table.notes, note))


def within_memory(
    graph: Graph, n_features: int, settings: Settings, memory: Memory | None = None, *, numbers: bool
) -> tuple[Settings, tuple[str, ...]]:
    """Return the settings, less a default method for which there is no memory, and notes on large graphs.

    Raises InvalidInputError if the fit takes more memory than is free, with what would fit.
    """
    with _named_by_option():
        methods = choose(settings.methods, n_features=n_features, wanted=settings.wanted if numbers else ())
    memory = memory or Memory()
    needed = _needed(memory, graph, n_features, methods)
    notes = []
    if settings.methods == (AUTO,) and not settings.wanted and not memory.has(needed):
        notes.append(f"{DEFAULT} is left out: it would take about {needed / 1e9:.1f} GB more memory, and {memory}")
        methods = tuple(method for method in methods if method.key != DEFAULT)
        settings = replace(settings, methods=tuple(each.key for each in methods))
        needed = _needed(memory, graph, n_features, methods)
    if not needed:
        return settings, ()
    if not memory.has(needed):
        remedy = (
            "--method lgc-rp" if memory.has(_needed(memory, graph, n_features, ())) else "fewer features (--ignore)"
        )
        raise InvalidInputError(
            f"the fit of {graph.n_nodes:,} nodes and {n_features} features would take about {needed / 1e9:.1f} GB more "
            f"memory, and {memory}; use {remedy}, or --cluster"
        )
    notes.append(
        f"{graph.n_nodes:,} nodes, {graph.n_edges:,} edges: the fit takes about {needed / 1e9:.1f} GB of memory"
    )
    return settings, tuple(notes)


def _needed(memory: Memory, graph: Graph, n_features: int, methods: Sequence[Method]) -> float:
    """Return the bytes that fits of a large graph take; 0 where that is little, or on a cluster."""
    n = graph.n_nodes
    if n < memory.large or not isinstance(graph.engine_name, str):
        return 0.0
    field = memory.field if any(method.key == DEFAULT for method in methods) else 0
    return n * (memory.feature * n_features + field) + min(n * memory.solve, LIMITS.solve_bytes)


def _slow_fits(targets: Mapping[str, Values], methods: Sequence[Method]) -> Iterator[str]:
    """Yield a warning on more than two classes, whose fields are fitted together."""
    for name, y in targets.items():
        k = y.classes.size if isinstance(y, Labels) else 0
        if k > 2 and DEFAULT in [method.key for method in methods]:
            yield f"{name}: {DEFAULT} has a latent value for each of {k} classes, which is slow; try --method lgc-rp"


def _target_notes(
    targets: Mapping[str, Values], observed: Mapping[str, Settings], *, named: bool, skewed: float = 1.5
) -> Iterator[str]:
    """Yield which column was chosen as the target, and what its known values suggest.

    A transform may help from the skewness of a log-normal whose logarithms vary by .45.
    """
    if not named:
        yield f"{next(iter(targets))}: predicted, as the only numeric column with empty cells"
    for name, y in targets.items():
        settings = observed[name]
        if isinstance(y, Labels):
            continue
        able = settings.transform == "identity" and settings.plain and {AUTO, DEFAULT} & {*settings.methods}
        known = y[~np.isnan(y)]
        values = [f"{value:g}" for value in np.unique(known)]
        if len(values) == 2 and settings.plain:
            share = propose_likelihood(known)[0] == "binomial" and settings.likelihood == AUTO
            also = ", or --likelihood binomial for probabilities" if share else ""
            yield f"{name} is {'/'.join(values)} and treated as numeric; use --classify for classes{also}"
        elif able and known.size >= ENOUGH and abs(float(skew(known))) > skewed:
            yield f"{name}: its values have a long tail; --transform auto may improve accuracy and intervals"


def _feature_notes(targets: Mapping[str, Values], features: Features, methods: Sequence[Method]) -> Iterator[str]:
    """Yield how features were made of the other columns."""
    if not any(method.features for method in methods):
        return
    if features.names or features.notes:
        yield f"features: {listing(features.names) or 'none'}"
    suspect = [name for name in features.names if is_about_measurement(name)]
    if suspect:
        yield (
            f"{listing(suspect)}: used as features, but the names suggest standard errors or sample sizes, which "
            "describe how an outcome was measured; leave them out with --ignore unless they describe the nodes"
        )
    for note in features.notes:
        yield imputation_note(note, methods)
    if len(targets) > 1:
        yield f"{', '.join(targets)}: targets, so none is a feature of another"


def is_about_measurement(name: str) -> bool:
    """Return whether a column is, by its name, a standard error, a margin of error, or the size of a sample.

    Examples
    --------
    >>> [name for name in ("rent_se", "moe", "n", "income", "sample_size", "nse") if is_about_measurement(name)]
    ['rent_se', 'moe', 'n', 'sample_size']
    """
    return _MEASURED.fullmatch(re.sub(r"\W+", "_", name.strip())) is not None


def imputation_note(note: str, methods: Sequence[Method]) -> str:
    """Return a note on the features; one on missing cells names the imputation of every method."""
    able = [method.key for method in methods if method.missing]
    if not note.startswith(FILLED) or not able:
        return note
    jointly = "filled missing cells from the other features and the neighbours"
    others = "" if len(able) == len(methods) else f" ({joined(able)}; other methods: with the column mean)"
    return note.replace(FILLED, jointly + others, 1)
