"""The Gaussian Markov random field over the attributes of a graph's nodes: its verbs, its display and its file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from graphmrf.caching import cached_property
from graphmrf.errors import InvalidInputError, refuses_former_options
from graphmrf.files import atomic, check_readable
from graphmrf.model.attributes import aligned, as_attributes, check_names, index_of
from graphmrf.model.conditional import condition, sample_field
from graphmrf.model.expected_accuracy import estimate_r2, suggest, target_covariance
from graphmrf.model.fit import Diagnostics, fit_maximum_likelihood, log_density, states_of
from graphmrf.model.maximise import FitProblem
from graphmrf.model.parameters import Parameters, Precision, edge_part, positive_definite, vector

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from graphmrf._typing import Bools, Floats, Ints
    from graphmrf.graph import Graph
    from graphmrf.linalg.spectrum import Spectrum
    from graphmrf.model.conditional import AttributePosterior
    from graphmrf.model.expected_accuracy import KnownData
    from graphmrf.model.parameters import Channels

_HEADER = {"format": "graphmrf.GaussianMRF", "version": 1}  # of a model file: its kind, and the version of its layout


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMRF:
    r"""A Gaussian field over the nodes of a graph: attributes `A` (n, q) of one mean and sparse precision.

    .. math:: \Gamma = H \otimes I + \mathrm{diag}(h) \otimes N,

    or, coupled, :math:`H \otimes I + C \otimes N`, is the precision of the stacked columns of `A`.

    Parameters
    ----------
    H : array of shape (q, q)
        Interactions between the attributes of one node; symmetric positive definite.
    h : array of shape (q,)
        Smoothness of every attribute along the edges, >= 0.
    C : array of shape (q, q)
        In place of `h`: interactions along the edges; symmetric positive semidefinite.
    mean : array of shape (q,), optional
        Mean of every attribute, the same at all nodes; 0 by default.
    names : sequence of str, optional
        Names of the attributes; ``a0, a1, ...`` by default.
    diagnostics : Diagnostics, optional
        How the fit went, on models made by `fit`.

    Raises
    ------
    InvalidInputError
        If `H` is not positive definite, `h` or `C` negative, or a size does not match.

    Examples
    --------
    >>> mrf = GaussianMRF([[2.0, -1.0], [-1.0, 2.0]], [1.0, 6.0], names=["income", "rent"])
    >>> mrf
    GaussianMRF(2 attributes; alpha: income=0.333, rent=0.75)
    >>> mrf.omega("rent"), mrf.alpha("rent"), mrf.beta("rent")
    (3.0, 0.75, array([0.5]))
    """

    H: Floats
    C: Floats
    mean: Floats
    names: tuple[str, ...]
    diagnostics: Diagnostics | None

    def __init__(
        self,
        H: ArrayLike,
        h: ArrayLike | None = None,
        *,
        C: ArrayLike | None = None,
        mean: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        diagnostics: Diagnostics | None = None,
    ) -> None:
        H = positive_definite(H)
        q = len(H)
        values: dict[str, Any] = {
            "H": H,
            "C": edge_part(h, C, q),
            "mean": vector("mean", np.zeros(q) if mean is None else mean, q),
            "names": check_names(names, q),
            "diagnostics": diagnostics,
        }
        for name, value in values.items():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        kind = "coupled, " if self.is_coupled else ""
        alphas = ", ".join(f"{name}={self.alpha(name):.3g}" for name in self.names[:8])
        more = ", ..." if len(self.names) > 8 else ""
        return f"GaussianMRF({kind}{len(self.names)} attributes; alpha: {alphas}{more})"

    def _repr_html_(self) -> str:
        """Return tables: mean and smoothing of every attribute, H, and C when it is not diagonal; then the fit."""
        smoothing = {"ω": map(self.omega, self.names), "α": map(self.alpha, self.names)}
        summary = pd.DataFrame(
            {"mean": self.mean, "h": self.h} | {k: list(v) for k, v in smoothing.items()}, self.names
        )
        matrices = {"H": self.H} | ({"C": self.C} if self.is_coupled else {})
        tables = [summary, *(pd.DataFrame(M, self.names, self.names).rename_axis(k) for k, M in matrices.items())]
        parts = [f"<b>GaussianMRF</b>, {len(self.names)} attributes{', coupled' if self.is_coupled else ''}"]
        parts += [table.to_html(float_format="%.4g".__mod__) for table in tables]
        if self.diagnostics is not None:
            parts.append(_html_fit(self.diagnostics))
        return "<div>" + "".join(parts) + "</div>"

    @property
    def q(self) -> int:
        """Number of attributes."""
        return len(self.H)

    @property
    def h(self) -> Floats:
        """Smoothness of every attribute, the diagonal of `C`, shape (q,)."""
        return np.diag(self.C).copy()

    @property
    def is_coupled(self) -> bool:
        """Whether `C` is more than a diagonal."""
        return bool(np.count_nonzero(self.C - np.diag(np.diag(self.C))))

    @cached_property
    def parameters(self) -> Parameters:
        """H, C and the mean alone: what the functions of `graphmrf.model` take."""
        return Parameters(self.H, self.C, self.mean)

    @property
    def channels(self) -> Channels:
        """The independent channels of the field."""
        return self.parameters.channels

    def index(self, target: int | str) -> int:
        """Return the position of an attribute given by name or position."""
        return index_of(target, self.names)

    def omega(self, target: int | str = -1) -> float:
        r"""Return the smoothing strength of an attribute, :math:`\omega = h_y / H_{yy}`."""
        y = self.index(target)
        return float(self.C[y, y] / self.H[y, y])

    def alpha(self, target: int | str = -1) -> float:
        r"""Return the smoothing level of an attribute, :math:`\alpha = \omega / (1 + \omega)`."""
        omega = self.omega(target)
        return omega / (1.0 + omega)

    def beta(self, target: int | str = -1) -> Floats:
        r"""Return the coefficients of the other attributes, :math:`\beta = -H_{xy} / H_{yy}`, shape (q - 1,)."""
        y = self.index(target)
        return np.delete(-self.H[:, y] / self.H[y, y], y)

    def edge_beta(self, target: int | str = -1) -> Floats:
        r"""Return the coefficients of the other attributes' differences to neighbours, shape (q - 1,); 0 if uncoupled.

        With :math:`b` = `beta` and :math:`g = -C_{xy} / H_{yy}`, the target `y` is expected, given all others `X`, at
        :math:`(I + \omega N)^{-1} (X b + N X g)`, means taken off.
        """
        y = self.index(target)
        return np.delete(-self.C[:, y] / self.H[y, y], y)

    def precision(self, graph: Graph) -> Precision:
        r"""Return :math:`\Gamma` on a graph, as an operator on attribute matrices (n, q).

        Examples
        --------
        >>> from graphmrf.graph import Graph
        >>> operator = GaussianMRF([[2.0]], [1.0]).precision(Graph.from_edges([0, 1], [1, 2]))
        >>> operator @ np.array([[1.0], [0.0], [0.0]])
        array([[ 3.        ],
               [-0.70710678],
               [ 0.        ]])
        """
        return Precision(graph, self.H, self.C)

    def log_likelihood(self, graph: Graph, A: Any, *, spectrum: Spectrum | None = None) -> float:
        r"""Return the log density of attributes, with its constant :math:`-\tfrac12 nq \log 2\pi`.

        NaN entries are integrated out. The higher it is on data that were not used for the fit, or the lower
        `diagnostics.aic` after a fit, the better a graph explains the attributes; `compare_graphs` tabulates that.

        Parameters
        ----------
        graph : Graph
            The graph.
        A : array of shape (n, q) or DataFrame
            The attributes, in the order of the model or named as there.
        spectrum : Spectrum, optional
            ``density_of_states(graph)``, if it is known already.

        Examples
        --------
        >>> from graphmrf.graph import Graph
        >>> path, A = Graph.from_edges([0, 1], [1, 2]), np.array([[1.0], [1.2], [0.8]])
        >>> round(GaussianMRF([[1.0]], [3.0]).log_likelihood(path, A), 4)
        -2.6687
        """
        array = aligned(graph.align(A, "A"), graph.n_nodes, self.names)
        return log_density(graph, array, self.parameters, states_of(graph, spectrum))

    @classmethod
    def fit(
        cls,
        graph: Graph,
        A: Any,
        *,
        center: bool | Literal["fitted"] = True,
        coupled: bool = False,
        start: GaussianMRF | None = None,
        spectrum: Spectrum | None = None,
    ) -> GaussianMRF:
        """Return the model of maximum likelihood.

        The problem is convex and solved to rounding by Newton's method: there is one answer, whatever the start.
        An entry of h can be 0 at the maximum, which `diagnostics.flags` reports.

        Parameters
        ----------
        graph : Graph
            The graph.
        A : array of shape (n, q) or DataFrame
            Attributes, in any units. NaN is missing: the likelihood of the observed entries is maximised.
        center : bool or "fitted"
            True takes the mean of every attribute over (observed) nodes, False takes 0, and "fitted" the mean of
            maximum likelihood, which weights nodes by their information: better where many entries are missing, or
            where the field is smooth and degrees differ much.
        coupled : bool
            Fit a full C in place of ``diag(h)``.
        start : GaussianMRF, optional
            Where to begin.
        spectrum : Spectrum, optional
            ``density_of_states(graph)``, if it is known already.

        Raises
        ------
        InvalidInputError
            If there are fewer nodes than attributes, or a column is empty, constant or a combination of others.

        Examples
        --------
        >>> from graphmrf.graph import Graph
        >>> ring = Graph.from_edges(range(8), [1, 2, 3, 4, 5, 6, 7, 0])
        >>> mrf = GaussianMRF.fit(ring, [3.0, 4.0, 4.5, 3.5, 2.0, 1.0, 0.5, 1.5])
        >>> round(mrf.alpha(), 3), mrf.mean
        (0.924, array([2.5]))
        """
        if center not in (True, False, "fitted"):
            raise InvalidInputError(f"center must be True, False or 'fitted', got {center!r}")
        array, names = as_attributes(graph.align(A, "A"), graph.n_nodes)
        begin = None if start is None else start.parameters
        problem = FitProblem(states_of(graph, spectrum), names, coupled, center == "fitted", begin)
        found, diagnostics = fit_maximum_likelihood(graph, array, problem, centre=bool(center))
        edges = {"C": found.C} if coupled else {"h": np.diag(found.C)}
        return cls(found.H, **edges, mean=found.mean, names=names, diagnostics=diagnostics)

    @refuses_former_options
    def sample(self, graph: Graph, n_samples: int = 1, random_state: int = 0) -> Floats:
        """Return independent draws of all attributes, shape (n_samples, n, q), on the graph of the fit or another.

        Examples
        --------
        >>> from graphmrf.graph import Graph
        >>> GaussianMRF([[2.0]], [1.0]).sample(Graph.from_edges([0, 1], [1, 2]), 5, random_state=1).shape
        (5, 3, 1)
        """
        return sample_field(self.parameters, graph, n_samples, random_state)

    def condition(self, graph: Graph, A: Any) -> AttributePosterior:
        """Return the posterior of the NaN entries of `A` given the others, with `mean`, `std` and `sample()`.

        `A` is an array of shape (n, q) with columns in the order of the model, or a DataFrame with its names.

        Examples
        --------
        >>> from graphmrf.graph import Graph
        >>> GaussianMRF([[1.0]], [1.0]).condition(Graph.from_edges([0], [1]), [[1.0], [np.nan]]).mean
        array([[1. ],
               [0.5]])
        """
        return condition(self.parameters, graph, A, self.names)

    def expected_r2(
        self, graph: Graph, target: int | str = -1, labelled: Bools | None = None, given: KnownData = "both"
    ) -> float:
        """Return the expected R2 on the unlabelled nodes; see `graphmrf.model.expected_accuracy.estimate_r2`."""
        return estimate_r2(target_covariance(self.parameters, graph, self.index(target), labelled), given)[0]

    def suggest(self, graph: Graph, target: int | str = -1, labelled: Bools | None = None, k: int = 1) -> Ints:
        """Return the `k` nodes whose labels would help most; see `graphmrf.model.expected_accuracy.suggest`."""
        return suggest(target_covariance(self.parameters, graph, self.index(target), labelled), k)

    def save(self, path: str | Path) -> None:
        """Write the model to a JSON file with exact numbers."""
        content: dict[str, Any] = _HEADER | {"names": list(self.names)}
        content["H"] = self.H.tolist()
        content |= {"C": self.C.tolist()} if self.is_coupled else {"h": self.h.tolist()}
        content["mean"] = self.mean.tolist()
        if self.diagnostics is not None:
            content["diagnostics"] = {k: _plain(v) for k, v in asdict(self.diagnostics).items()}
        content["sha256"] = _checksum(content)
        with atomic(path) as draft:
            draft.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | Path) -> GaussianMRF:
        """Return the model in a JSON file written by `save`.

        Raises
        ------
        InvalidInputError
            If the file is damaged, not a model, or of another version.
        """
        arguments = _arguments(Path(path))
        try:
            found = cls(**arguments)
            _check_smooth(found.parameters)
        except InvalidInputError as error:
            raise InvalidInputError(f"{path} cannot be used as a model: {error}") from None
        return found


def _check_smooth(parameters: Parameters, *, smoothest: float = 1e12) -> None:
    """Raise where a field is so smooth that its precision is singular in float64."""
    strength = float(parameters.channels.strength.max())
    if strength > smoothest:
        raise InvalidInputError(f"along the edges it is {strength:.1e} times as smooth as within nodes; fit it again")


def _html_fit(d: Diagnostics) -> str:
    line = f"log-likelihood {d.log_likelihood:.6g}, AIC {d.aic:.6g}, BIC {d.bic:.6g}, {d.iterations} steps"
    flags = "".join(f"<li>{escape(flag)}</li>" for flag in d.flags)
    return f"<p>{line}</p>" + (f"<ul>{flags}</ul>" if flags else "")


def _arguments(path: Path) -> dict[str, Any]:
    """Return the arguments of the model in a JSON file."""
    content = _content(path)
    arguments: dict[str, Any] = {name: content[name] for name in ("H", "h", "C", "mean", "names") if name in content}
    fit = content.get("diagnostics")
    if fit is not None:
        errors = {k: None if fit[k] is None else np.array(fit[k], dtype=np.float64) for k in ("H_std", "C_std")}
        arguments["diagnostics"] = Diagnostics(**fit | errors | {"flags": tuple(fit["flags"])})
    return arguments


def _content(path: Path) -> dict[str, Any]:
    """Return what is in a model file, after checking that it is one and undamaged."""
    try:
        content = json.loads(check_readable(path).read_text(encoding="utf-8"))
    except InvalidInputError as error:
        raise InvalidInputError(f"{error}; name a file made by graphmrf fit -o or mrf.save") from None
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, or brackets without end
        raise InvalidInputError(f"{path} is a damaged model file ({error}); fit and save the model again") from None
    if not isinstance(content, dict) or content.get("format") != _HEADER["format"]:
        raise InvalidInputError(
            f"{path} is not a model file: it has no format {_HEADER['format']!r}; make one with graphmrf fit -o or "
            "mrf.save(path)"
        )
    if content.get("version") != _HEADER["version"]:
        raise InvalidInputError(
            f"{path} has version {content.get('version')!r} of the model format, this graphmrf reads "
            f"{_HEADER['version']}; fit and save the model again, or use the graphmrf that wrote it"
        )
    if content.get("sha256") != _checksum(content):
        raise InvalidInputError(
            f"{path} is a damaged model file, or was changed since it was written; fit and save the model again"
        )
    return content


def _checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of everything in a model file but itself."""
    rest = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return a value for JSON, which has no NaN: it means 'no standard error' here and becomes null."""
    if isinstance(value, np.ndarray):
        return [_plain(part) for part in value] if value.ndim else _plain(value.item())
    if isinstance(value, float | np.floating):
        return float(value) if np.isfinite(value) else None
    return list(value) if isinstance(value, tuple) else value
