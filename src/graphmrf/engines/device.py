"""Dense float64 arrays on a GPU that NumPy's own functions and operators work on.

A formula in NumPy runs where its large arrays are: ``np.exp(-K)`` of a `DeviceArray` is one, and small arrays of the
host are brought to it. What PyTorch has no counterpart for here is computed on the host; nothing is ever refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from numpy.lib.mixins import NDArrayOperatorsMixin

from graphmrf.errors import InvalidInputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphmrf._typing import Floats

Tensor: TypeAlias = Any
"""A tensor on the device; PyTorch's own types are not part of the check."""


class DeviceArray(NDArrayOperatorsMixin):
    """A float64 array on a device.

    Parameters
    ----------
    tensor : torch.Tensor
        Its values.

    Examples
    --------
    >>> A = DeviceArray.of(np.array([[1.0, 2.0], [3.0, 4.0]]), "cpu")
    >>> np.asarray(np.exp(0.0 * A) @ np.ones(2))
    array([2., 2.])
    """

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    @classmethod
    def of(cls, array: Floats, device: Any) -> DeviceArray:
        """Return an array on a device."""
        return cls(torch.from_numpy(np.ascontiguousarray(array, dtype=np.float64)).to(device))

    def place(self, array: Any) -> DeviceArray:
        """Return another array where this one is."""
        return array if isinstance(array, DeviceArray) else DeviceArray.of(array, self.tensor.device)

    def empty(self, *shape: int) -> DeviceArray:
        """Return an uninitialised array where this one is; raise InvalidInputError where there is no room for it."""
        try:
            return DeviceArray(torch.empty(shape, dtype=torch.float64, device=self.tensor.device))
        except torch.OutOfMemoryError as error:
            raise InvalidInputError(
                f"covariances must fit in the memory of the GPU: {8 * np.prod(shape) / 1e9:.1f} GB more do not; use "
                'GraphRegressor(solver="sparse"), or fewer labels'
            ) from error

    def cholesky(self) -> DeviceArray | None:
        """Return upper triangular R with :math:`R'R` this matrix; None where it is not positive definite.

        Only the lower triangle is read.
        """
        L, failed = torch.linalg.cholesky_ex(self.tensor)
        return None if int(failed) else DeviceArray(L.mT)

    def solve_triangular(self, B: DeviceArray) -> DeviceArray:
        """Return :math:`R^{-T} B` for this upper triangular matrix R."""
        return DeviceArray(torch.linalg.solve_triangular(self.tensor.mT, B.tensor, upper=False))

    def solve_factored(self, B: DeviceArray) -> DeviceArray:
        """Return :math:`(R'R)^{-1} B` for this upper triangular matrix R."""
        return DeviceArray(torch.cholesky_solve(B.tensor, self.tensor.mT))

    def inverse_factored(self) -> DeviceArray:
        """Return :math:`(R'R)^{-1}` for this upper triangular matrix R."""
        return DeviceArray(torch.cholesky_inverse(self.tensor.mT))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Floats:  # noqa: FBT001 - NumPy's own signature
        values = self.tensor.detach().cpu().numpy()
        return np.array(values, dtype=dtype, copy=copy)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return np.array, (np.asarray(self),)  # whoever unpickles it may have no GPU

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self.tensor.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return int(self.tensor.numel())

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return int(self.tensor.ndim)

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """The type of the entries."""
        return np.dtype(np.float64)

    @property
    def T(self) -> DeviceArray:
        """The transpose, a view."""
        return DeviceArray(self.tensor.permute(*reversed(range(self.ndim))))

    def __len__(self) -> int:
        return int(self.tensor.shape[0])

    def __float__(self) -> float:
        return float(self.tensor)

    def __iter__(self) -> Iterator[DeviceArray]:
        return (DeviceArray(each) for each in self.tensor)

    def __getitem__(self, key: Any) -> DeviceArray:
        return DeviceArray(self.tensor[self._key(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[self._key(key)] = self._operand(value)

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return the same entries in another shape."""
        return DeviceArray(self.tensor.reshape(*shape))

    def ravel(self) -> DeviceArray:
        """Return the entries one after the other."""
        return self.reshape(-1)

    def copy(self) -> DeviceArray:
        """Return a copy."""
        return DeviceArray(self.tensor.clone())

    def sum(self, axis: Any = None) -> DeviceArray:
        """Return the sum of all entries, or along an axis."""
        return DeviceArray(self.tensor.sum() if axis is None else self.tensor.sum(dim=axis))

    def mean(self, axis: Any = None) -> DeviceArray:
        """Return the mean of all entries, or along an axis."""
        return DeviceArray(self.tensor.mean() if axis is None else self.tensor.mean(dim=axis))

    def tolist(self) -> Any:
        """Return the entries as Python numbers."""
        return self.tensor.tolist()

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if ufunc not in _UFUNCS or method not in ("__call__", "outer") or options:
            return _on_host(getattr(ufunc, method), inputs, options | ({} if out is None else {"out": out}))
        operands = [self._operand(each) for each in inputs]
        if method == "outer":
            operands[0] = operands[0].reshape(*operands[0].shape, *(1,) * operands[1].ndim)
        target = None if out is None else out[0]
        if isinstance(target, DeviceArray):
            _UFUNCS[ufunc](*operands, out=target.tensor)
            return target
        result = DeviceArray(_UFUNCS[ufunc](*operands))
        if target is None:
            return result
        target[...] = np.asarray(result)
        return target

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function not in _FUNCTIONS:
            return _on_host(function, args, kwargs)
        found = _FUNCTIONS[function](*self._each(args), **self._each(kwargs))
        return tuple(map(DeviceArray, found)) if isinstance(found, tuple) else DeviceArray(found)

    def _operand(self, value: Any) -> Tensor:
        """Return a number or an array as a tensor; numbers stay on the host, where PyTorch takes them from."""
        if isinstance(value, DeviceArray):
            return value.tensor
        array = np.asarray(value, dtype=np.float64)
        return torch.tensor(float(array), dtype=torch.float64) if not array.ndim else self.place(array).tensor

    def _each(self, value: Any) -> Any:
        """Return the arguments of a function with the arrays among them as tensors."""
        if isinstance(value, (list, tuple)):
            return type(value)(self._each(each) for each in value)
        if isinstance(value, dict):
            return {name: self._each(each) for name, each in value.items()}
        return self._operand(value) if isinstance(value, (DeviceArray, np.ndarray)) else value

    def _key(self, key: Any) -> Any:
        """Return an index with the arrays in it as tensors."""
        if isinstance(key, tuple):
            return tuple(self._key(each) for each in key)
        if isinstance(key, np.ndarray):
            return torch.from_numpy(np.ascontiguousarray(key)).to(self.tensor.device)
        return key


def _on_host(function: Any, args: Any, kwargs: Any) -> Any:
    """Return what a function says of the arrays in main memory."""
    plain = [[_plain(each) for each in arg] if isinstance(arg, (list, tuple)) else _plain(arg) for arg in args]
    return function(*plain, **{name: _plain(value) for name, value in kwargs.items()})


def _plain(value: Any) -> Any:
    return np.asarray(value) if isinstance(value, DeviceArray) else value


def _einsum(formula: str, *operands: Tensor, **_: Any) -> Tensor:
    return torch.einsum(formula, *operands)


def _summed(a: Tensor, axis: Any = None) -> Tensor:
    return a.sum() if axis is None else a.sum(dim=axis)


def _dot(a: Tensor, b: Tensor, out: Tensor | None = None) -> Tensor:
    return a @ b if out is None else out.copy_(a @ b)


def _stacked(arrays: Any, axis: int = 0) -> Tensor:
    return torch.stack(list(arrays), dim=axis)


def _joined(arrays: Any, axis: int = 0) -> Tensor:
    return torch.cat(list(arrays), dim=axis)


_UFUNCS: dict[Any, Callable[..., Tensor]] = {
    np.add: torch.add,
    np.subtract: torch.sub,
    np.multiply: torch.mul,
    np.divide: torch.div,
    np.power: torch.pow,
    np.matmul: torch.matmul,
    np.negative: torch.neg,
    np.exp: torch.exp,
    np.log: torch.log,
    np.sqrt: torch.sqrt,
    np.square: torch.square,
    np.absolute: torch.abs,
    np.maximum: torch.maximum,
    np.minimum: torch.minimum,
}
"""Functions entry by entry, and the product of matrices."""

_FUNCTIONS: dict[Any, Callable[..., Tensor]] = {
    np.einsum: _einsum,
    np.sum: _summed,
    np.stack: _stacked,
    np.concatenate: _joined,
    np.hstack: lambda arrays: torch.hstack(list(arrays)),
    np.column_stack: lambda arrays: torch.column_stack(list(arrays)),
    np.tensordot: lambda a, b, axes=2: torch.tensordot(a, b, dims=axes),
    np.vdot: lambda a, b: (a * b).sum(),
    np.dot: _dot,
    np.diag: torch.diag,
    np.tril: torch.tril,
    np.empty_like: torch.empty_like,
    np.linalg.eigh: torch.linalg.eigh,
    np.linalg.inv: torch.linalg.inv,
}
"""Functions of whole arrays."""
