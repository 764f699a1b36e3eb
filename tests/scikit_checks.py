"""The estimator checks of scikit-learn on estimators whose rows name nodes: which apply, and why others cannot."""

import warnings
from typing import Any

from sklearn.utils.estimator_checks import check_estimator

from cases import random_case
from graphmrf import Graph, GraphSmoother, LinearGraphConvolution, NodeAdapter

CASE = random_case(4, n=40, p=3, labelled=30)


def adapter(graph: Graph = CASE.graph, alpha: float = 0.5) -> NodeAdapter:
    """Return a regressor on nodes, fast to fit."""
    return NodeAdapter(LinearGraphConvolution(alpha=alpha), graph, features=CASE.X)


CHECKED = {"NodeAdapter": adapter(), "GraphSmoother": GraphSmoother(CASE.graph, features=CASE.X)}
PASSED = {"NodeAdapter": 15, "GraphSmoother": 23}
"""Checks that pass at least, with every version of scikit-learn that is supported."""

_REASONS = {
    "fits a matrix of random numbers, where X must name nodes of the graph": (
        *("fit_score_takes_y", "estimators_overwrite_params", "dont_overwrite_parameters"),
        *("estimators_fit_returns_self", "readonly_memmap_input", "n_features_in_after_fitting"),
        *("positive_only_tag_during_fit", "pipeline_consistency", "estimators_pickle", "f_contiguous_array_estimator"),
        *("regressors_train", "regressor_data_not_an_array", "regressors_no_decision_function", "supervised_y_2d"),
        *("regressors_int", "methods_sample_order_invariance", "methods_subset_invariance", "dict_unchanged"),
        *("fit_idempotent", "fit_check_is_fitted", "n_features_in", "requires_y_none"),
        *("transformer_general", "transformer_data_not_an_array"),
    ),
    "asks which numbers a feature may be, where X holds ids or positions": (
        *("estimators_dtypes", "complex_data", "dtype_object", "estimators_nan_inf", "transformer_preserve_dtypes"),
        *("estimator_sparse_tag", "estimator_sparse_array", "estimator_sparse_matrix"),
    ),
    "asks how many columns or rows X may have, where it has one column, and a row for any of the nodes": (
        *("estimators_empty_data_messages", "fit2d_1sample", "fit2d_1feature", "fit2d_predict1d", "fit1d"),
    ),
}
NOT_APPLICABLE = {f"check_{name}": why for why, names in _REASONS.items() for name in names}
"""Checks that cannot pass, and why; what they ask beyond that is asked of rows of nodes in the tests."""


def results(name: str) -> list[dict[str, Any]]:
    """Run all checks on one of `CHECKED`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found: list[dict[str, Any]] = check_estimator(CHECKED[name], on_skip=None, on_fail=None)
    return found
