"""Graph convolutional network: the nonlinear relative of simple graph convolution, trained by gradient descent."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from graphmrf.errors import ConvergenceError, InvalidInputError
from graphmrf.estimators.base import FeatureEstimator
from graphmrf.estimators.error_bars import degrees_of_freedom, root_mean, student_std
from graphmrf.estimators.inputs import check_fitted, match_features
from graphmrf.linalg.smoothing import isolated_weight
from graphmrf.networks.options import (
    DEPTHS,
    EPOCHS,
    LayerShape,
    Scaling,
    TrainingRecipe,
    pick_device,
    read_activation,
    read_choice,
    read_recipe,
)
from graphmrf.selection import AlphaSearch, MatchedFolds, own_fold

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphmrf._typing import Floats, Ints
    from graphmrf.estimators.inputs import Outcome, Table
    from graphmrf.graph import Graph
    from graphmrf.networks.training import Learner

Choice: TypeAlias = int | Literal["cv"]


@dataclass(eq=False, repr=False, kw_only=True)
class GraphConvolutionalNetwork(FeatureEstimator):
    r"""A network whose layers average over neighbours (GCN), trained on the squared error of the labels.

    .. math:: H_0 = X, \qquad H_k = \sigma(\tilde S H_{k-1} \Theta_k + 1 c_k'), \qquad y = H_K \beta + c

    with :math:`\tilde S = (D + I)^{-1/2} (W + I) (D + I)^{-1/2}`. It needs PyTorch: ``pip install 'graphmrf[gnn]'``.
    Unless it is trained as in the paper, an isolated node counts as one of mean degree whose neighbours have average
    features. Both hyper-parameters are chosen by one cross-validation, in which all folds are trained at once. On one
    device the same seed gives the same network.

    Parameters
    ----------
    n_layers : "cv" or int >= 1, default "cv"
        The number K of layers; "cv" takes the best of 1, 2, 3.
    epochs : "cv" or int >= 1, default "cv"
        Steps of the training; "cv" takes the best of 100, 200, 300, 400, 500.
    hidden : int, default 32
        Width of every layer.
    activation : "relu" or "identity", default "relu"
        The function :math:`\sigma`. With "identity" the network is linear in the features, as `SimpleGraphConvolution`
        is, but trained by steps; with ``training="paper"`` it is the paper's SGC.
    training : "full", "paper" or Training, default "full"
        "full" uses all labels and all neighbours at every step; "paper" a tenth of the labels and the mean over the
        node and at most 30 of its neighbours; see `estimators.Training`.
    device : str, default "auto"
        Where PyTorch computes: "cpu", "cuda", "cuda:1"; "auto" is a GPU if there is one.
    cv : see `LabelPropagation`
        Folds of the cross-validation.
    random_state : int, default 0
        Seed of the folds, the initial weights, the batches and the neighbours drawn.
    fit_intercept : bool, default True
        Fit the constants c, and centre features and outcomes first. Without it a node with features 0 among such
        neighbours is predicted 0: for data of mean zero (see `LinearGraphConvolution`).

    Attributes
    ----------
    n_layers_, epochs_ : int
        Those in use.
    device_ : str
        Where it was trained.
    weights_ : tuple of arrays
        Weights of every layer and of the output, then their constants.
    scaling_ : Scaling
        Means and units by which features and outcome were standardised.
    searched_ : tuple or None
        Folds of the search and predictions of every fold's network; None where nothing was searched.
    n_coefficients_ : int
        Degrees of freedom spent by the training, so that the mean squares of residuals and of out-of-fold errors
        agree. (Without cross-validation: the number of features, and one for the intercept.)
    dof_ : float
        Degrees of freedom left to the noise scale, those of Student's distribution of errors.
    scale_ : float
        Root mean square of out-of-fold errors; without cross-validation of the residuals.
    cv_results_ : dict or None
        "n_layers", "epochs", "mean_r2" (pooled over the folds) and "fold_r2" of every pair tried; None when both
        were given.

    Examples
    --------
    >>> import numpy as np
    >>> from graphmrf import Graph, GraphConvolutionalNetwork
    >>> path = Graph.from_edges([0, 1, 2, 3], [1, 2, 3, 4])
    >>> X, y = np.arange(5.0)[:, None], np.array([0.0, 1.0, np.nan, 3.0, 4.0])
    >>> GraphConvolutionalNetwork(n_layers=1, epochs=300).fit(path, X, y).predict().round()
    array([0., 1., 2., 3., 4.])
    """

    n_layers: Choice = "cv"
    epochs: Choice = "cv"
    hidden: int = 32
    activation: Literal["relu", "identity"] = "relu"
    training: TrainingRecipe = "full"
    device: str = "auto"
    cv: int = 5
    random_state: int = 0
    fit_intercept: bool = True

    def _learn_features(self, graph: Graph, table: Table, outcome: Outcome) -> None:
        layers, epochs = read_choice("n_layers", self.n_layers, DEPTHS), read_choice("epochs", self.epochs, EPOCHS)
        read_choice("hidden", self.hidden, ())
        training, relu = read_recipe(self.training), read_activation(self.activation)
        if not table.columns.count:
            raise InvalidInputError("GraphConvolutionalNetwork needs features, got a table without columns")
        self.device_ = pick_device(self.device)
        self.scaling_ = Scaling.none(table.X.shape[1])
        if training.standardise:
            self.scaling_ = Scaling.of(table.X, outcome.y[outcome.known], centred=bool(self.fit_intercept))
        shapes = [LayerShape(K, int(self.hidden), relu=relu, bias=bool(self.fit_intercept)) for K in layers]
        self._isolated = isolated_weight(graph) if training.standardise else 1.0
        self._train(self._learner(graph, table.X), outcome, shapes, epochs)
        self._measure(outcome)

    def _train(self, learner: Learner, outcome: Outcome, shapes: list[LayerShape], epochs: tuple[int, ...]) -> None:
        """Set the network and its predictions, by cross-validation if there is more than one pair to choose from."""
        self._shape, self.epochs_ = shapes[0], epochs[0]
        self.cv_results_: dict[str, Any] | None = None
        self.searched_: tuple[MatchedFolds, Floats] | None = None
        if len(shapes) * len(epochs) > 1:
            self._search(learner, outcome, shapes, epochs)
        else:
            ((networks,),) = learner.learn(outcome.y, outcome.known[None], shapes, epochs)
            self.weights_ = networks.arrays(0)
        self.n_layers_, self._fitted = self._shape.n_layers, self._predicted(learner)
        self._check_finite()

    def _search(self, learner: Learner, outcome: Outcome, shapes: list[LayerShape], epochs: tuple[int, ...]) -> None:
        """Set shape, steps and weights by cross-validation; networks of all folds and of all labels learn at once."""
        matched, y = outcome.matched_folds(learner.graph, self.cv, self.random_state), outcome.y[outcome.known]
        folds = matched.folds
        stages = list(learner.without_folds(outcome.y, folds, shapes, epochs))
        tried = [stage[place] for place in range(len(shapes)) for stage in stages]
        pairs = [(shape, stop) for shape in shapes for stop in epochs]
        fits = np.stack([fit for fit, _ in tried])
        search = AlphaSearch.score(range(len(pairs)), own_fold(fits, folds), y, folds, matched.weights)
        self._shape, self.epochs_ = pairs[search.best]
        self.searched_, self.weights_ = (matched, fits[search.best]), tried[search.best][1]
        self.cv_results_ = {
            "n_layers": np.array([shape.n_layers for shape, _ in pairs]),
            "epochs": np.array([stop for _, stop in pairs]),
            "mean_r2": search.mean_r2,
            "fold_r2": search.fold_r2,
        }

    def _measure(self, outcome: Outcome) -> None:
        """Set the noise scale and the degrees of freedom."""
        y = outcome.y[outcome.known]
        squares = (y - self._fitted[outcome.known]) ** 2
        if self.searched_ is None:
            self.n_coefficients_ = self._columns.count + int(self.fit_intercept)
            self.dof_ = degrees_of_freedom(y.size, self.n_coefficients_)
            self.scale_ = root_mean(squares, self.dof_)
            return
        matched, fits = self.searched_
        unseen = matched.weights * (y - own_fold(fits, matched.folds)) ** 2
        self.dof_ = degrees_of_freedom(y.size, 0.0, chosen=True)
        self.scale_ = root_mean(unseen, self.dof_)
        share = float(squares.sum() / unseen.sum()) if unseen.sum() > 0 else 1.0
        self.n_coefficients_ = int(np.clip(np.ceil((1.0 - share) * y.size), 0, y.size - 1))

    def _on_other_graph(self, graph: Graph | None, X: Any) -> tuple[Floats, Callable[[], Floats]]:
        mean = self._predicted(self._learner(*self._other_features(graph, X)))
        return mean, lambda: student_std(self.scale_, np.ones(mean.size), self.dof_)

    @property
    def model_std_(self) -> Floats:
        """Standard deviations (n,) of the model, the same at every node, before intervals are checked."""
        check_fitted(self, "_fitted")
        return student_std(self.scale_, np.ones(self._fitted.size), self.dof_)

    def _choices(self) -> dict[str, Any]:
        return {"n_layers": self.n_layers_, "epochs": self.epochs_}

    def refit_folds(self, graph: Graph, X: Any, outcome: Outcome, folds: Ints) -> Floats:
        """Return (n_labelled, n_folds): predictions at labelled nodes of the network trained without each fold.

        The layers and steps are those chosen; folds that were trained in the search are not trained again.
        """
        check_fitted(self, "_fitted")
        if self.searched_ is not None and np.array_equal(self.searched_[0].folds, folds):
            return self.searched_[1]
        X = match_features(X, graph.n_nodes, self._columns, "GraphConvolutionalNetwork")
        learner = self._learner(graph, X)
        (((fits, _),),) = learner.without_folds(outcome.y, folds, [self._shape], [self.epochs_])
        return fits

    def _learner(self, graph: Graph, X: Floats) -> Learner:
        alone, means = graph.isolated[:, None], self.scaling_.means
        X = np.where(alone, means + self._isolated * (X - means), X)
        learner: Learner = import_module("graphmrf.networks.training").Learner(
            graph, X, self.scaling_, read_recipe(self.training), self.random_state, self.device_
        )
        return learner

    def _check_finite(self) -> None:
        if not np.isfinite(self._fitted).all():
            raise ConvergenceError(
                "the training diverged; scale the features to moderate size, as training='full' does, or lower the "
                "learning rate"
            )

    def _predicted(self, learner: Learner) -> Floats:
        """Return the predictions of the trained network at the nodes of a learner."""
        networks = import_module("graphmrf.networks.training").Networks
        prediction: Floats = learner.predict(networks.of(self._shape, self.weights_, learner.device))[0]
        return prediction
