"""The exact field's covariance as a GPyTorch kernel: the same terms, fitted by Adam on exact marginal likelihoods.

Linear effects of own, neighbours', second neighbours' and smoothed features, a squared-exponential function with a
length scale for every feature, one that drifts over the graph, the Matern field and noise. Eigenvectors are given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gpytorch
import numpy as np
import torch

if TYPE_CHECKING:
    from graphmrf._typing import Floats, Ints
    from graphmrf.field.design import Design
    from graphmrf.field.matern import Eigen

STEPS = 100
"""Steps of Adam, as many as its tutorials take; twice as many take twice as long."""


class FieldKernel(gpytorch.kernels.Kernel):  # type: ignore[misc]
    """The covariance between nodes, which are given by their numbers."""

    def __init__(self, eigen: Eigen, design: Design, device: str) -> None:
        super().__init__()
        values, vectors, groups, Z = (
            torch.from_numpy(np.array(each)).to(device)
            for each in (eigen.values, eigen.vectors, design.groups[:3], design.Z)
        )
        self.values, self.vectors, self.groups, self.Z = values, vectors, groups, Z / (2.0 * design.p**0.5)
        starts = {"linear": np.log(np.full(4, 0.2)), "others": np.log([0.2, 0.1, 0.3]), "lengths": np.zeros(Z.shape[1])}
        starts |= {"local_length": np.zeros(1), "omegas": np.log([20.0, 20.0]), "nus": np.zeros(2)}
        for name, start in starts.items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(start).to(device)))

    def _spectrum(self, which: int) -> Any:
        spectrum = (1.0 + self.omegas[which].exp() * self.values) ** -self.nus[which].exp()
        return spectrum / spectrum.mean()

    def _correlation(self, which: int, a: Any, b: Any) -> Any:
        spectrum = self._spectrum(which)
        scale = (self.vectors**2 @ spectrum) ** -0.5
        return (self.vectors[a] * spectrum) @ self.vectors[b].T * scale[a, None] * scale[b]

    def forward(self, x1: Any, x2: Any, diag: bool = False, **_: Any) -> Any:  # noqa: FBT001, FBT002 - GPyTorch's own
        """Return the covariance between two lists of nodes."""
        a, b = x1[..., 0].long(), x2[..., 0].long()
        smoothed = self.vectors @ (self._spectrum(0)[:, None] * (self.vectors.T @ self.groups[0]))
        linear, (nonlinear, local, field) = self.linear.exp() / self.groups.shape[2], self.others.exp()
        K = sum(v * (F[a] @ F[b].T) for v, F in zip(linear, (*self.groups, smoothed), strict=True))
        K = K + nonlinear * torch.exp(-0.5 * _squares(self.Z / self.lengths.exp(), a, b))
        drift = torch.exp(-0.5 * _squares(self.Z / self.local_length.exp(), a, b)) * self._correlation(1, a, b)
        K = K + local * drift + field * self._correlation(0, a, b)
        return K.diagonal() if diag else K


def _squares(Z: Any, a: Any, b: Any) -> Any:
    norms = (Z**2).sum(dim=1)
    return (norms[a, None] + norms[b] - 2.0 * Z[a] @ Z[b].T).clamp(min=0.0)


class FieldModel(gpytorch.models.ExactGP):  # type: ignore[misc]
    """The outcome of labelled nodes."""

    def __init__(self, nodes: Any, z: Any, likelihood: Any, kernel: FieldKernel) -> None:
        super().__init__(nodes, z, likelihood)
        self.mean_module, self.covar_module = gpytorch.means.ConstantMean().to(z), kernel

    def forward(self, x: Any) -> Any:
        """Return the prior of some nodes."""
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


def fit(eigen: Eigen, design: Design, rows: Ints, y: Floats, device: str) -> tuple[FieldModel, Any, float]:
    """Return the fitted model, its likelihood, and the log marginal likelihood of the labels `y` in their units."""
    z = torch.from_numpy((y - y.mean()) / y.std()).to(device)
    nodes = torch.from_numpy(rows[:, None].astype(np.float64)).to(device)
    likelihood = gpytorch.likelihoods.GaussianLikelihood().to(z)
    model = FieldModel(nodes, z, likelihood, FieldKernel(eigen, design, device))
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    adam = torch.optim.Adam(model.parameters(), lr=0.1)
    model.train()
    with gpytorch.settings.max_cholesky_size(1_000_000):
        for _ in range(STEPS):
            adam.zero_grad()
            loss = -evidence(model(nodes), z)
            loss.backward()
            adam.step()
    return model, likelihood, -loss.item() * y.size - y.size * float(np.log(y.std()))


def predict(model: FieldModel, likelihood: Any, nodes: Ints) -> Floats:
    """Return the expected standardised outcome of some nodes."""
    model.eval()
    likelihood.eval()
    at = torch.from_numpy(nodes[:, None].astype(np.float64)).to(model.train_targets)
    with torch.no_grad(), gpytorch.settings.max_cholesky_size(1_000_000):
        return np.asarray(model(at).mean.cpu())
