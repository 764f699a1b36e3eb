"""Models to JSON and back, exactly; and files that are not models."""

import json
from pathlib import Path

import numpy as np
import pytest

from graphmrf.errors import InvalidInputError
from graphmrf.graph import Graph
from graphmrf.model import GaussianMRF


def fitted(*, coupled: bool) -> GaussianMRF:
    rng = np.random.default_rng(0)
    i = np.arange(40)
    return GaussianMRF.fit(Graph.from_edges(i, (i + 1) % 40), rng.normal(size=(40, 2)), coupled=coupled)


@pytest.mark.parametrize("coupled", [True, False])
def test_everything_comes_back_exactly(tmp_path: Path, coupled: bool) -> None:
    model = fitted(coupled=coupled)
    model.save(tmp_path / "model.json")
    again = GaussianMRF.load(tmp_path / "model.json")
    for name in ("H", "C", "mean"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again.names == model.names
    assert again.diagnostics is not None
    assert model.diagnostics is not None
    for name in ("log_likelihood", "gradient_norm", "iterations", "n_parameters", "flags", "aic", "bic"):
        assert getattr(again.diagnostics, name) == getattr(model.diagnostics, name)
    if model.diagnostics.H_std is not None:
        np.testing.assert_array_equal(again.diagnostics.H_std, model.diagnostics.H_std)
        np.testing.assert_array_equal(again.diagnostics.C_std, model.diagnostics.C_std)


def test_model_without_diagnostics_comes_back(tmp_path: Path) -> None:
    GaussianMRF([[0.1]], [1 / 3], mean=[5.0], names=["café"]).save(tmp_path / "model.json")
    again = GaussianMRF.load(tmp_path / "model.json")
    assert again.h[0] == 1 / 3
    assert again.names == ("café",)
    assert again.diagnostics is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "damaged model file"),
        ("[]", "not a model file"),
        ('{"format": "other"}', "not a model file"),
        ('{"format": "graphmrf.GaussianMRF", "version": 2}', "version 2 of the model format, this graphmrf reads 1"),
        ('{"format": "graphmrf.GaussianMRF", "version": 1}', "damaged model file"),
        ('{"format": "graphmrf.GaussianMRF", "version": 1, "H": "a"}', "damaged model file"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "model.json").write_text(text)
    with pytest.raises(InvalidInputError, match=message):
        GaussianMRF.load(tmp_path / "model.json")


def test_damaged_numbers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    fitted(coupled=False).save(path)
    content = json.loads(path.read_text())
    for change in ({"H": [[1.0, 5.0], [5.0, 1.0]]}, {"h": [-1.0, 1.0]}, {"names": ["a"]}, {"diagnostics": [1]}):
        path.write_text(json.dumps(content | change))
        with pytest.raises(InvalidInputError):
            GaussianMRF.load(path)


def test_binary_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInputError, match="damaged"):
        GaussianMRF.load(tmp_path / "model.json")


@pytest.mark.parametrize("coupled", [True, False])
def test_no_flipped_bit_of_a_model_goes_unseen(tmp_path: Path, coupled: bool) -> None:
    model, rng = fitted(coupled=coupled), np.random.default_rng(0)
    path = tmp_path / "model.json"
    model.save(path)
    whole = path.read_bytes()
    for place in rng.integers(0, len(whole), 300):
        flipped = bytearray(whole)
        flipped[place] ^= 1 << rng.integers(0, 8)
        path.write_bytes(flipped)
        try:
            found = GaussianMRF.load(path)
        except InvalidInputError:
            continue
        for name in ("H", "C", "mean"):  # a blank became another, or the name of the sum was hit
            np.testing.assert_array_equal(getattr(found, name), getattr(model, name))
        assert found.names == model.names


def test_brackets_without_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.json"
    for text in ("[" * 100_000, '{"a":' * 100_000, "9" * 10_000, '{"format": 1' + "0" * 400 + "}"):
        path.write_text(text)
        with pytest.raises(InvalidInputError, match=r"damaged model file|not a model file"):
            GaussianMRF.load(path)


def test_a_field_smoother_than_float64_can_tell_is_refused(tmp_path: Path) -> None:
    GaussianMRF([[1.0]], [1e13]).save(tmp_path / "model.json")
    with pytest.raises(InvalidInputError, match=r"cannot be used as a model: .* 1\.0e\+13 times as smooth"):
        GaussianMRF.load(tmp_path / "model.json")
    GaussianMRF([[1.0]], [1e11]).save(tmp_path / "model.json")
    assert GaussianMRF.load(tmp_path / "model.json").h[0] == 1e11


def test_a_file_that_is_not_there_is_told_with_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"name a file made by graphmrf fit -o or mrf\.save"):
        GaussianMRF.load(tmp_path / "nowhere.json")
