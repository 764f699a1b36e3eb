"""Known parameters found again on a large graph, from attributes drawn by our own sampler.

The graph enters only through its density of states and one pass over the data; the optimiser does not see it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from benchmarks.show import Row, peak_gigabytes, timed
from benchmarks.workload import power_law_graph
from graphmrf.linalg.spectrum import density_of_states
from graphmrf.model import GaussianMRF
from graphmrf.model.likelihood import statistics
from graphmrf_paper import synthetic

if TYPE_CHECKING:
    from graphmrf._typing import Floats


def run(*, quick: bool) -> list[Row]:
    """Fit five attributes drawn at the paper's two lower strengths."""
    n = 20_000 if quick else 1_000_000
    return [_recovery(n, h0) for h0 in ((1.0,) if quick else (1.0, 10.0))]


def _recovery(n: int, h0: float) -> Row:
    graph = power_law_graph(n, int(10.2 * n), seed=0)
    truth = GaussianMRF(*synthetic.parameters(h0))
    sample_seconds, A = timed(lambda: truth.sample(graph, random_state=1)[0])
    spectrum_seconds, states = timed(lambda: density_of_states(graph))
    seconds, mrf = timed(lambda: GaussianMRF.fit(graph, A, spectrum=states))
    one_pass, _ = timed(lambda: statistics(graph, A))
    d = mrf.diagnostics
    assert d is not None
    assert d.h_std is not None
    assert d.H_std is not None
    return {
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "attributes": truth.q,
        "h0": h0,
        "sampling s": sample_seconds,
        "spectrum s": spectrum_seconds,
        "one pass s": one_pass,
        "optimiser s": seconds - one_pass,
        "gradient": d.gradient_norm,
        "error of H": _distance(mrf.H, truth.H),
        "error of h": _distance(mrf.h, truth.h),
        "worst h": float(np.abs(mrf.h / truth.h - 1.0).max()),
        "in standard errors": float(
            max(np.abs((mrf.h - truth.h) / d.h_std).max(), np.abs((mrf.H - truth.H) / d.H_std).max())
        ),
        "error bar of log-likelihood": d.log_likelihood_error / abs(d.log_likelihood),
        "peak GB": peak_gigabytes(),
    }


def _distance(found: Floats, truth: Floats) -> float:
    return float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
