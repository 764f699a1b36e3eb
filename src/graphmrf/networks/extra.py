"""The optional dependency: is PyTorch there, and which device does it have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from graphmrf.errors import InvalidInputError, MissingExtraError


def require_torch() -> Any:
    """Return PyTorch, or say how to install it."""
    try:
        return import_module("torch")
    except ImportError as error:
        raise MissingExtraError(
            "GraphConvolutionalNetwork needs PyTorch, which is not installed; pip install 'graphmrf[gnn]'"
        ) from error


def pick_device(name: str) -> str:
    """Return the device to compute on: the one named, for "auto" a GPU if there is one.

    Raises
    ------
    InvalidInputError
        If PyTorch does not know the device, or it is not there.
    """
    torch = require_torch()
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InvalidInputError(
            f"device {name!r} is not there ({reason}); use device='auto' or 'cpu', or a PyTorch built for it"
        ) from error
    return str(device)
