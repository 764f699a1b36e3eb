"""Bad input: the rule, the finding and the remedy."""

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from cases import random_case
from graphmrf import LabelPropagation, LinearGraphConvolution, LinearRegression, ResidualPropagation
from graphmrf.errors import InvalidInputError
from graphmrf.estimators.inputs import read_labels

CASE = random_case(2, n=12, p=2, labelled=8)
GRAPH, X, Y = CASE.graph, CASE.X, CASE.y
FRAME = pd.DataFrame(X, columns=["age", "size"])


def with_cell(values: Any, place: Any, value: Any) -> Any:
    changed = values.copy()
    if isinstance(changed, pd.DataFrame):
        changed.iloc[place] = value
    else:
        changed[place] = value
    return changed


BAD: dict[str, tuple[Callable[[], Any], str]] = {
    "graph": (lambda: LabelPropagation().fit(cast("Any", np.eye(3)), None, Y), r"numpy.ndarray; .*Graph\(W\)"),
    "y shape": (lambda: LabelPropagation().fit(GRAPH, None, Y[:5]), r"each of the 12 nodes, got shape \(5,\)"),
    "y column": (lambda: LabelPropagation().fit(GRAPH, None, Y[:, None]), r"got shape \(12, 1\)"),
    "y infinite": (lambda: LabelPropagation().fit(GRAPH, None, with_cell(Y, 3, np.inf)), "got inf at node 3"),
    "y text": (lambda: LabelPropagation().fit(GRAPH, None, ["a"] * 12), "y must be numeric, got dtype <U1"),
    "y objects": (lambda: LabelPropagation().fit(GRAPH, None, np.array(["a"] * 12, object)), "y must be numeric"),
    "X missing": (
        lambda: LinearGraphConvolution().fit(GRAPH, None, Y),
        "needs features X, got None; .*LabelPropagation",
    ),
    "X missing LR": (lambda: LinearRegression().fit(GRAPH, None, Y), "LinearRegression needs features"),
    "X missing RP": (lambda: ResidualPropagation(LinearGraphConvolution()).fit(GRAPH, None, Y), "needs features X"),
    "X one-dimensional": (lambda: LinearRegression().fit(GRAPH, X[:, 0], Y), r"reshape one feature to \(n, 1\)"),
    "X rows": (lambda: LinearRegression().fit(GRAPH, X[:7], Y), "each of the 12 nodes, got 7"),
    "X NaN": (
        lambda: LinearRegression().fit(GRAPH, with_cell(X, (4, 1), np.nan), Y),
        "nan in column 1 at node 4.*fill",
    ),
    "X NaN named": (
        lambda: LinearRegression().fit(GRAPH, with_cell(FRAME, (4, 1), np.nan), Y),
        "nan in column 'size' at node 4",
    ),
    "X infinite": (lambda: LinearGraphConvolution().fit(GRAPH, with_cell(X, (0, 0), -np.inf), Y), "-inf in column 0"),
    "X text": (lambda: LinearRegression().fit(GRAPH, FRAME.assign(town="a"), Y), "in column 'town'; encode it"),
    "alpha one": (lambda: LabelPropagation(alpha=1.0).fit(GRAPH, None, Y), r"number in \[0, 1\), got 1.0"),
    "alpha negative": (lambda: LinearGraphConvolution(alpha=-0.1).fit(GRAPH, X, Y), r"\[0, 1\), got -0.1"),
    "alpha NaN": (lambda: LabelPropagation(alpha=np.nan).fit(GRAPH, None, Y), "got nan"),
    "alpha word": (lambda: LabelPropagation(alpha=cast("Any", "best")).fit(GRAPH, None, Y), "'cv' or a number"),
    "alpha bool": (lambda: LabelPropagation(alpha=False).fit(GRAPH, None, Y), "got False"),
    "alpha and omega": (lambda: LabelPropagation(alpha=0.5, omega=1.0).fit(GRAPH, None, Y), "give alpha or omega"),
    "omega negative": (lambda: LabelPropagation(omega=-1.0).fit(GRAPH, None, Y), "omega must be a number >= 0"),
    "omega infinite": (lambda: LabelPropagation(omega=np.inf).fit(GRAPH, None, Y), "omega must be a number >= 0"),
    "omega huge": (lambda: LabelPropagation(omega=1e300).fit(GRAPH, None, Y), "below 1, got 1e"),
    "shrinkage": (
        lambda: LinearGraphConvolution(shrinkage=-1.0).fit(GRAPH, X, Y),
        "shrinkage must be None or a number",
    ),
    "folds": (lambda: LabelPropagation(cv=1).fit(GRAPH, None, Y), "folds must be at least 2"),
    "base LP": (lambda: ResidualPropagation(LabelPropagation()).fit(GRAPH, X, Y), "use LabelPropagation alone"),
    "base class": (lambda: ResidualPropagation(LogisticRegression).fit(GRAPH, X, Y), "base must be a regressor"),
    "base classifier": (lambda: ResidualPropagation(LogisticRegression()).fit(GRAPH, X, Y), "base must be a regressor"),
    "base alpha": (lambda: ResidualPropagation(LinearGraphConvolution(alpha=2.0)).fit(GRAPH, X, Y), "got 2.0"),
    "LP elsewhere": (
        lambda: LabelPropagation(alpha=0.5).fit(GRAPH, None, Y).predict(X=cast("Any", X)),
        "only the nodes of the graph",
    ),
    "RP elsewhere": (
        lambda: ResidualPropagation(LinearRegression(), alpha=0.5).fit(GRAPH, X, Y).predict(X=cast("Any", X)),
        "only the nodes of the graph",
    ),
    "LGC X alone": (lambda: LinearGraphConvolution(alpha=0.5).fit(GRAPH, X, Y).predict(X=X), "got X alone; pass both"),
    "LGC graph alone": (lambda: LinearGraphConvolution(alpha=0.5).fit(GRAPH, X, Y).predict(GRAPH), "needs features X"),
    "LR graph alone": (lambda: LinearRegression().fit(GRAPH, X, Y).predict(GRAPH), "needs features X"),
    "other count": (lambda: LinearRegression().fit(GRAPH, X, Y).predict(X=X[:, :1]), "2 features of the fit, got 1"),
    "other sparse": (lambda: LinearRegression().fit(GRAPH, X, Y).predict(X=sparse.csr_array(X)), "use X.toarray"),
    "other rows": (lambda: LinearRegression().fit(GRAPH, X, Y).predict(GRAPH, X[:5]), "each of the 12 nodes, got 5"),
    "other names": (
        lambda: LinearRegression().fit(GRAPH, FRAME, Y).predict(X=FRAME.rename(columns={"age": "era"})),
        r"missing \['age'\], unexpected \['era'\]",
    ),
    "a column twice": (
        lambda: LinearRegression().fit(GRAPH, FRAME, Y).predict(X=FRAME[["size", "age", "age"]]),
        r"\['age'\] more than once",
    ),
}


@pytest.mark.parametrize(("call", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_told(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        call()


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(Y).astype("Float64").mask(np.isnan(Y)),
        pd.Series(Y, index=range(100, 112)),
        [None if np.isnan(value) else value for value in Y],
        np.ma.masked_invalid(Y),
    ],
    ids=["nullable", "indexed", "list with None", "masked"],
)
def test_missing_labels_come_in_many_forms(y: Any) -> None:
    expected = LabelPropagation(alpha=0.5).fit(GRAPH, None, Y).predict()
    np.testing.assert_array_equal(LabelPropagation(alpha=0.5).fit(GRAPH, None, y).predict(), expected)


def test_integers_and_booleans_are_numbers() -> None:
    frame = pd.DataFrame({"count": np.arange(12), "flag": np.arange(12) % 2 == 0})
    expected = LinearRegression().fit(GRAPH, frame.to_numpy(float), Y).predict()
    np.testing.assert_allclose(LinearRegression().fit(GRAPH, frame, Y).predict(), expected)


def test_coefficients_carry_the_names_of_the_columns() -> None:
    for model in (LinearRegression(), LinearGraphConvolution(alpha=0.5)):
        coef = model.fit(GRAPH, FRAME, Y).coef_
        assert isinstance(coef, pd.Series)
        assert list(coef.index) == ["age", "size"]
        np.testing.assert_allclose(coef, model.fit(GRAPH, X, Y).coef_)


def test_labels_are_codes_of_sorted_classes() -> None:
    labels = read_labels(["no", None, "yes"], 3)
    assert (labels.codes.tolist(), labels.classes.tolist()) == ([0, -1, 1], ["no", "yes"])
