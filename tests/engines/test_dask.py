"""Clusters of real processes: the same numbers as on one machine, also when workers are lost."""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import graphmrf as gm
from cases import random_case
from graphmrf._typing import Floats
from graphmrf.engines import Engine, dask_columns
from graphmrf.engines.dask import Cluster, column_bytes, with_time_left
from graphmrf.engines.dask_checkpoints import Saving, named_arrays, read_blocks, same_division, write_arrays
from graphmrf.errors import ClusterError, InvalidInputError
from graphmrf.linalg import multiply
from graphmrf.linalg.multishift import ShiftedSystems

distributed: Any = pytest.importorskip("distributed")
fsspec: Any = pytest.importorskip("fsspec")
# Warnings ignored are those of Dask and Tornado, of connections that were cut.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def machines() -> Iterator[Cluster]:
    with gm.cluster("local:2") as made:
        yield made


@pytest.fixture(scope="module")
def harmed() -> Iterator[Cluster]:
    """Workers of which some tests take one away each; others are started in their place, which takes seconds."""
    with gm.cluster("local:4") as made:
        yield made


def test_a_fit_is_that_of_one_machine_to_the_last_bit(machines: Cluster) -> None:
    case = random_case(4, n=300, p=11, labelled=150)
    expected, found = (
        gm.LinearGraphConvolution().fit(graph, case.X, case.y) for graph in (case.graph, case.graph.to(machines))
    )
    np.testing.assert_array_equal(found.predict(), expected.predict())


def test_a_model_draws_on_workers_what_it_draws_here(machines: Cluster) -> None:
    u, v = np.random.default_rng(0).integers(0, 1700, (2, 4000))
    graph = gm.Graph.from_edges(u, v, n_nodes=1700)
    mrf = gm.GaussianMRF(np.array([[2.0, 0.5], [0.5, 1.0]]), np.array([3.0, 20.0]))
    expected, found = (mrf.sample(each, 3, random_state=1) for each in (graph, graph.to(machines.client)))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("blow", [signal.SIGKILL, signal.SIGSTOP])
def test_work_of_a_worker_that_is_killed_or_hangs_is_done_by_others(
    harmed: Cluster, tmp_path: Path, blow: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    hit = tmp_path / "hit"

    def square(engine: Any, number: int) -> int:
        assert engine.n == 20
        if number == 3:
            with suppress(FileExistsError):  # the first who comes here is hit
                hit.mkdir()
                (hit / "pid").write_text(str(os.getpid()))
                (hit / "address").write_text(distributed.get_worker().address)
                os.kill(os.getpid(), blow)
        return number**2

    machines, address = Cluster(harmed.client), hit / "address"
    workers = machines.workers
    if blow == signal.SIGSTOP:  # its silence is noted at once, as no test should wait for that

        def others() -> dict[str, dict[str, Any]]:
            silent = address.read_text() if address.exists() else ""
            return {name: about for name, about in workers().items() if name != silent}

        monkeypatch.setattr(machines, "workers", others)
    try:
        engine = random_case(0, n=20).graph.to(machines).engine
        assert list(engine.map_columns(square, [(i,) for i in range(12)])) == [i**2 for i in range(12)]
    finally:
        if blow == signal.SIGSTOP:
            os.kill(int((hit / "pid").read_text()), signal.SIGKILL)


def test_a_worker_without_a_sign_of_life_counts_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"a": {"last_seen": 1.0}, "b": {"last_seen": 1.0}}
    client, dismissed = SimpleNamespace(status="running", scheduler_info=lambda **_: {"workers": found}), list[str]()
    client.run_on_scheduler = lambda _, worker: dismissed.append(worker)
    machines, clock = Cluster(client, silence=5.0), SimpleNamespace(monotonic=lambda: 0.0)
    monkeypatch.setattr("graphmrf.engines.dask.time", clock)
    assert list(machines.workers()) == ["a", "b"]
    clock.monotonic, found["b"] = lambda: 4.0, {"last_seen": 2.0}
    assert list(machines.workers()) == ["a", "b"]
    clock.monotonic = lambda: 6.0
    assert list(machines.workers()) == ["b"]
    assert dismissed == ["a"]


def test_those_who_wait_are_told_how_long(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    seconds = iter([0.0, 10.0, 30.0, 60.0])
    monkeypatch.setattr("graphmrf.engines.dask.time", SimpleNamespace(monotonic=lambda: next(seconds)))
    assert list(with_time_left(iter("abc"), 3, told.append)) == ["a", "b", "c"]
    assert told == ["1 of 3 parts done, about 0:00:20 left", "2 of 3 parts done, about 0:00:15 left", "3 parts done"]


@pytest.fixture(scope="module")
def rows(machines: Cluster) -> Cluster:
    return Cluster(machines.client, partition="rows", parts=3)


def test_rows_on_workers_do_what_one_engine_does(rows: Cluster) -> None:
    rng = np.random.default_rng(0)
    u, v, weight = *rng.integers(0, 39, (2, 80)), rng.uniform(0.5, 2.0, 80)
    graph = gm.Graph.from_edges(u, v, weight, n_nodes=40)  # the last node has no edge
    expected = _exercise(graph.to("numba").engine)  # first, so that workers find the kernels compiled
    np.testing.assert_allclose(_exercise(graph.to(rows).engine), expected, rtol=1e-12)


def _exercise(engine: Engine) -> Floats:
    """All operations of an engine, one after the other; what they return in one array."""
    rng, chosen, width = np.random.default_rng(1), np.array([30, 2, 39, 17]), 8
    found: list[Floats] = []
    X, allowed, kinds = rng.normal(size=(40, 6)), rng.random((40, 6)) < 0.7, rng.integers(0, 3, 40)
    scale, back, tables = rng.normal(size=width), rng.normal(size=width), rng.normal(size=(3, 2, 2))
    V, start, few = engine.load(X), engine.random(3, 6, "normal"), engine.load(X[:4], chosen)
    out, mixed = engine.like(V), engine.zeros(6)
    for mask in (engine.mask(None, width), engine.mask(allowed, width), engine.mask(allowed[:4], width, chosen)):
        found.append(engine.advance(V, scale, start, back, mask, out))
        found.append(engine.subtract(out, back, few))
    engine.mix(V, tables, kinds, out, mixed)
    found += [engine.unload(mixed, 6), engine.unload(mixed, 5, chosen)]
    some, whole, total = engine.window(6, 2, chosen), engine.window(6, 2, None), engine.window(6, 1, chosen)
    for window in (some, whole):
        engine.store(V, window, 0)
        engine.store(mixed, window, 1)
    engine.combine(some, rng.normal(size=(6, 1, 2)), total)
    engine.combine(some, rng.normal(size=(6, 1, 1)), total, keep=rng.normal(size=(6, 1)))
    engine.restore(whole, 1, out)
    found += [engine.read(some), engine.read(whole), engine.read(total), engine.unload(out, 6)]
    return np.concatenate([each.ravel() for each in found])


def test_a_search_on_rows_is_that_of_one_machine(rows: Cluster) -> None:
    case = random_case(4, n=40, p=3, labelled=20)
    expected, found = (gm.LabelPropagation().fit(graph, None, case.y) for graph in (case.graph, case.graph.to(rows)))
    assert found.alpha_ == expected.alpha_
    np.testing.assert_allclose(found.predict(), expected.predict(), rtol=0, atol=1e-9)


def test_a_graph_of_files_is_read_by_workers_alone(rows: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, 299, (2, 900))  # with loops, edges listed again, and a node without any
    for i in range(3):
        part = pd.DataFrame({"source": u[i::3], "target": v[i::3]})
        part.to_parquet(tmp_path / f"{i}.parquet")
    whole = gm.Graph.from_edges(u, v, n_nodes=300)
    graph = gm.Graph.from_parquet(str(tmp_path), n_nodes=300, cluster=rows)
    y = np.where(rng.random(300) < 0.5, rng.normal(size=300), np.nan)
    expected, found = (gm.LabelPropagation().fit(each, None, y) for each in (whole, graph))
    np.testing.assert_allclose(found.predict(), expected.predict(), rtol=0, atol=1e-9)
    assert graph.n_edges == whole.n_edges
    with pytest.raises(InvalidInputError, match="with the workers"):
        _ = graph.adjacency


def test_workers_find_nodes_by_their_ids(rows: Cluster, tmp_path: Path) -> None:
    names = ["Bonn", "Ulm", "Köln", "Jena"]
    pd.DataFrame({"from": ["Ulm", "Jena"], "to": ["Jena", "Bonn"]}).to_parquet(tmp_path / "0.parquet")
    options: Any = {"n_nodes": 4, "cluster": rows, "ends": ("from", "to")}
    graph = gm.Graph.from_parquet(str(tmp_path), **options, ids=names)
    assert graph.degrees.tolist() == [1, 1, 0, 2]
    with pytest.raises(InvalidInputError, match="leads to Bonn, which is no id"):
        gm.Graph.from_parquet(str(tmp_path), **options, ids=["Rom", *names[1:]])
    with pytest.raises(InvalidInputError, match="must be whole numbers from 0 to 3"):
        gm.Graph.from_parquet(str(tmp_path), **options)


def test_files_are_read_again_when_a_worker_that_has_rows_is_killed(harmed: Cluster, tmp_path: Path) -> None:
    names, made = [f"n{i}" for i in range(50)], Cluster(harmed.client, partition="rows", parts=2)
    pd.DataFrame({"source": names[:-1], "target": names[1:]}).to_parquet(tmp_path / "0.parquet")
    graph = gm.Graph.from_parquet(str(tmp_path), n_nodes=50, cluster=made, ids=names)
    X, engine = np.ones((50, 1)), graph.engine
    expected = engine.unload(engine.load(X), 1)
    killed = engine.homes()[0]  # type: ignore[attr-defined]
    os.kill(made.ask(killed, os.getpid), signal.SIGKILL)
    [found] = engine.map_columns(lambda engine, X: engine.unload(engine.load(X), 1), [(X,)])
    np.testing.assert_array_equal(found, expected)
    made.close()


def test_rows_that_only_a_paused_worker_has_are_made_again(harmed: Cluster, tmp_path: Path) -> None:
    made = Cluster(harmed.client, partition="rows", parts=2)
    pd.DataFrame({"source": range(49), "target": range(1, 50)}).to_parquet(tmp_path / "0.parquet")
    graph, X = gm.Graph.from_parquet(str(tmp_path), n_nodes=50, cluster=made), np.ones((50, 1))
    expected, engine = multiply(graph, X), graph.engine
    paused = engine.homes()[0]  # type: ignore[attr-defined]
    process = made.ask(paused, os.getpid)
    os.kill(process, signal.SIGSTOP)
    try:
        made.dismiss(paused)  # as after two minutes of silence, which no test should wait for
        np.testing.assert_array_equal(multiply(graph, X), expected)
    finally:
        with suppress(ProcessLookupError):  # whoever started it has ended it by now
            os.kill(process, signal.SIGKILL)
    made.close()


def test_a_weighted_graph_of_files_is_that_of_its_edges(rows: Cluster, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    u, v, weight = *rng.integers(0, 29, (2, 40)), rng.choice([0.0, 0.5, 1.0, 2.0], 40)
    frame = pd.DataFrame({"source": u, "target": v, "weight": weight})
    there_and_back = frame.iloc[:10].rename(columns={"source": "target", "target": "source"})
    for k, part in enumerate((frame.iloc[:25], frame.iloc[25:])):
        part.to_parquet(tmp_path / f"{k}.parquet")
    whole = gm.Graph.from_edges(u, v, weight, n_nodes=30)
    graph = gm.Graph.from_parquet(str(tmp_path), n_nodes=30, cluster=rows, weight="weight")
    np.testing.assert_allclose(graph.degrees, whole.degrees)
    assert (graph.n_components, graph.n_edges) == (whole.n_components, whole.n_edges)
    np.testing.assert_array_equal(pd.factorize(graph.components)[0], pd.factorize(whole.components)[0])
    X, y = rng.normal(size=(30, 2)), np.where(rng.random(30) < 0.6, rng.normal(size=30), np.nan)
    for model in (gm.SimpleGraphConvolution(), gm.ResidualPropagation(gm.LinearGraphConvolution(alpha=0.5), alpha=0.5)):
        np.testing.assert_allclose(model.fit(graph, X, y).predict(), model.fit(whole, X, y).predict(), atol=1e-6)
    there_and_back.to_parquet(tmp_path / "2.parquet")
    again = gm.Graph.from_parquet(str(tmp_path), n_nodes=30, cluster=rows, weight="weight")
    assert again.n_edges == whole.n_edges
    assert again.degrees.sum() < whole.degrees.sum() + 2 * weight[:10].sum()


@pytest.mark.parametrize("n_nodes", [60, 3300])
def test_error_bars_of_a_graph_that_only_workers_hold_are_those_of_one_machine(
    rows: Cluster, tmp_path: Path, n_nodes: int
) -> None:
    rng = np.random.default_rng(0)
    u, v = rng.integers(0, n_nodes - 1, (2, 2 * n_nodes))  # the last node has no edge
    weight = rng.uniform(0.5, 2.0, u.size)
    pd.DataFrame({"source": u, "target": v, "weight": weight}).to_parquet(tmp_path / "0.parquet")
    whole = gm.Graph.from_edges(u, v, weight, n_nodes=n_nodes)
    graph = gm.Graph.from_parquet(str(tmp_path), n_nodes=n_nodes, cluster=rows, weight="weight")
    X, y = rng.normal(size=(n_nodes, 2)), np.full(n_nodes, np.nan)
    y[:40] = rng.normal(size=40)
    models: list[Any] = [gm.LabelPropagation(alpha=0.5)]  # exact for few unknown nodes, from draws for many
    if n_nodes < 100:
        convolution = gm.LinearGraphConvolution(alpha=0.5)
        models += [convolution, gm.ResidualPropagation(convolution, alpha=0.5), gm.SimpleGraphConvolution(n_layers=2)]
    for model in models:
        expected, found = (model.fit(each, X, y).predict(return_std=True) for each in (whole, graph))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert (found[1][~np.isnan(y)] >= 0).all()
        assert (found[1][np.isnan(y)] > 0).all()


def test_weights_that_are_none_are_refused(rows: Cluster, tmp_path: Path) -> None:
    pd.DataFrame({"source": [0], "target": [1], "weight": [-1.0]}).to_parquet(tmp_path / "0.parquet")
    with pytest.raises(InvalidInputError, match="column weight: an edge weight must be a finite number >= 0"):
        gm.Graph.from_parquet(str(tmp_path), n_nodes=2, cluster=rows, weight="weight")


@pytest.mark.parametrize(("n_nodes", "words"), [(7, "raise n_nodes"), (9, None)])
def test_numbers_beyond_the_nodes_are_refused(rows: Cluster, tmp_path: Path, n_nodes: int, words: str | None) -> None:
    pd.DataFrame({"source": [0, 3], "target": [1, 8]}).to_parquet(tmp_path / "0.parquet")
    if words is None:
        assert gm.Graph.from_parquet(str(tmp_path), n_nodes=n_nodes, cluster=rows).n_edges == 2
    else:
        with pytest.raises(InvalidInputError, match=words):
            gm.Graph.from_parquet(str(tmp_path), n_nodes=n_nodes, cluster=rows)


def test_a_part_is_computed_again_when_rows_are_lost(harmed: Cluster) -> None:
    rows = Cluster(harmed.client, partition="rows", parts=2)
    case = random_case(4, n=300, p=3, labelled=150)
    attempts = []

    def halve(engine: Any, X: Floats) -> Floats:
        V = engine.load(X)
        attempts.append(engine.subtract(V, np.full(V.shape[1], 0.5), V))
        if len(attempts) == 1:
            os.kill(rows.ask(engine.homes()[0], os.getpid), signal.SIGKILL)
            engine.subtract(V, np.zeros(V.shape[1]), V)
        return np.asarray(engine.unload(V, X.shape[1]))

    [half] = case.graph.to(rows).engine.map_columns(halve, [(case.X,)])
    np.testing.assert_allclose(half, case.X / 2, rtol=1e-12)
    assert len(attempts) == 2


def _path_systems(made: Cluster | None) -> ShiftedSystems:
    """Systems on a path, whose solution takes some sixty steps."""
    graph = gm.Graph.from_edges(np.arange(199), np.arange(1, 200)).to("numba" if made is None else made)
    return ShiftedSystems(graph.engine, np.array([[1.02], [1.1]]))


def _harmed_at(engine: Any, step: int, harm: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Do harm before a product of an engine on rows, counted from 1; return the list of products that are made."""
    call, made = engine.call, list[str]()

    def counted(parts: Any, name: str, values: Any) -> Any:
        if name == "run" and values[0][1][-1][0] == "advance":
            made.append(name)
            if len(made) == step:
                harm()
        return call(parts, name, values)

    monkeypatch.setattr(engine, "call", counted)
    return made


ALWAYS = Saving(every=0.0, share=np.inf)  # iterates are saved at every step


def test_a_worker_killed_late_in_a_solve_costs_few_steps(harmed: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    B, made = (
        np.random.default_rng(0).normal(size=(200, 3)),
        Cluster(harmed.client, partition="rows", parts=2, saving=ALWAYS),
    )
    undisturbed, systems = _path_systems(None).solve(B, tolerance=1e-8), _path_systems(made)
    engine: Any = systems.engine
    late = undisturbed.iterations - 5

    def kill() -> None:
        os.kill(made.ask(engine.homes()[0], os.getpid), signal.SIGKILL)

    products = _harmed_at(engine, late, kill, monkeypatch)
    found = systems.solve(B, tolerance=1e-8)
    assert late > 40
    assert len(products) <= undisturbed.iterations + 10 + 3  # with that of the blow, and two of the residual
    np.testing.assert_allclose(found.x, undisturbed.x, rtol=0, atol=1e-9 * np.abs(undisturbed.x).max())
    made.close()


@pytest.mark.parametrize("where", ["seen", "not seen", "damaged", "full"])
def test_iterates_are_saved_where_workers_see_the_folder_and_the_disk_has_room(
    machines: Cluster, tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    B, checkpoint = np.eye(200, 2), None if where == "not seen" else tmp_path
    saving = replace(ALWAYS, spare=0.0 if where == "full" else 0.25)
    made = Cluster(machines.client, partition="rows", parts=3, checkpoint=checkpoint, saving=saving)
    systems, expected = _path_systems(made), _path_systems(None).solve_rows(B, np.arange(5), tolerance=1e-8)
    engine: Any = systems.engine
    if where == "not seen":
        monkeypatch.setattr(made, "sees_disk", lambda *_: False)

    def lose() -> None:
        if where == "damaged":
            for file in tmp_path.glob("*/*-1.npz"):
                file.write_bytes(file.read_bytes()[:-100])
        engine.close()  # what the workers hold is gone, as with a lost one

    products = _harmed_at(engine, 35, lose, monkeypatch)
    found = systems.solve_rows(B, np.arange(5), tolerance=1e-8)
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-10)
    again = len(products) - expected.iterations
    assert again >= 34 if where != "seen" else again <= 10
    assert {file.suffix for file in tmp_path.iterdir()} <= {".npy", ".npz"}  # of iterates nothing is left
    assert not list(made.folder.glob("*/results.npz"))
    made.close()


_SCHEDULER = """
import distributed, sys, time
if __name__ == "__main__":
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None) as made:
        print(made.scheduler_address, flush=True)
        time.sleep(600)
"""


def test_a_solve_goes_on_with_a_new_scheduler_where_the_old_was_killed(
    machines: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    B, kept = np.eye(200, 1), tmp_path / "kept"
    (tmp_path / "scheduler.py").write_text(_SCHEDULER)
    expected = _path_systems(None).solve(B, tolerance=1e-8)
    with subprocess.Popen([sys.executable, tmp_path / "scheduler.py"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        with gm.cluster(process.stdout.readline().strip(), partition="rows", checkpoint=kept, saving=ALWAYS) as made:
            systems = _path_systems(made)

            def kill(client: Any = made.client) -> None:
                process.kill()
                while client.status == "running":  # workers alone would go on for a few steps
                    time.sleep(0.01)

            _harmed_at(systems.engine, 35, kill, monkeypatch)
            with pytest.raises(ClusterError, match=f"is gone.*; the same command continues from {kept}"):
                systems.solve(B, tolerance=1e-8)
    systems = _path_systems(Cluster(machines.client, partition="rows", checkpoint=kept, saving=ALWAYS))
    products = _harmed_at(systems.engine, -1, process.kill, monkeypatch)
    found = systems.solve(B, tolerance=1e-8)
    assert len(products) <= expected.iterations - 25 + 2
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-9 * np.abs(expected.x).max())


@given(arrays(np.float64, (3, 2)), st.sets(st.integers(0, 40), max_size=5), st.integers(0, 30))
def test_blocks_come_back_under_numbers_of_another_start(values: Floats, places: set[int], first: int) -> None:
    kinds: list[Any] = [values, (values, None), (values, np.arange(2))]
    kept = {place: kinds[place % 3] for place in places}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "0.npz"
        write_arrays(file, named_arrays(kept, first))
        found = read_blocks(file, 100)
    expected = {place - first + 100: value for place, value in kept.items() if place >= first}
    assert {place: repr(value) for place, value in found.items()} == {
        place: repr(value) for place, value in expected.items()
    }


def test_rows_are_cut_as_in_the_run_before(tmp_path: Path) -> None:
    three, two = np.array([0, 3, 7, 9]), np.array([0, 4, 9])
    assert same_division(None, two) is two
    assert same_division(tmp_path, three).tolist() == [0, 3, 7, 9]
    assert same_division(tmp_path, two).tolist() == [0, 3, 7, 9]  # fewer workers hold several parts
    assert same_division(tmp_path, np.array([0, 2, 4, 6, 9])).tolist() == [0, 2, 4, 6, 9]  # more get parts of their own


def test_rows_lost_outside_a_part_are_told_and_the_engine_goes_on(rows: Cluster) -> None:
    engine: Any = random_case(0, n=20).graph.to(rows).engine
    X = np.arange(40.0).reshape(20, 2)
    V = engine.load(X)
    engine.unload(V, 2)
    engine.close()  # what the workers hold is gone, as with a lost one
    with pytest.raises(ClusterError, match="the other workers take them over"):
        engine.unload(V, 2)
    np.testing.assert_allclose(engine.unload(engine.load(X), 2), X, rtol=1e-12)


def test_rows_go_to_other_workers_when_one_is_lost_before_it_has_them(
    rows: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    alive, lists = rows.some_workers(), [["tcp://127.0.0.1:1"]]
    monkeypatch.setattr(rows, "some_workers", lambda: lists.pop() if lists else alive)
    X = np.arange(40.0).reshape(20, 2)
    engine = random_case(0, n=20).graph.to(rows).engine
    np.testing.assert_allclose(engine.unload(engine.load(X), 2), X, rtol=1e-12)
    assert not lists


def test_work_that_is_stopped_leaves_nothing_with_the_workers(machines: Cluster) -> None:
    def add(engine: Any, number: int) -> int:
        return int(number + engine.n)

    def holds(token: str) -> bool:
        return token in dask_columns.HELD

    def held() -> bool:
        return any(machines.ask(worker, holds, engine.token) for worker in machines.workers())

    made = Cluster(machines.client)
    engine: Any = random_case(0, n=20).graph.to(made).engine
    results: Any = engine.map_columns(add, [(i,) for i in range(8)])
    assert next(results) == 20
    assert held()
    results.close()  # as an interrupt from the keyboard does
    made.close()
    end = time.monotonic() + 60.0
    while held() and time.monotonic() < end:  # until a part that was under way is done
        time.sleep(0.1)
    assert not held()


def test_functions_are_submitted_as_to_a_pool(machines: Cluster) -> None:
    assert machines.executor().submit(pow, 2, 5).result() == 32


def test_an_error_of_the_work_is_told_as_it_is(machines: Cluster) -> None:
    def fail(engine: Any, number: int) -> int:
        raise InvalidInputError(f"{number} of {engine.n} is wrong")

    engine = random_case(0, n=20).graph.to(machines).engine
    with pytest.raises(InvalidInputError, match="7 of 20 is wrong"):
        list(engine.map_columns(fail, [(7,)]))


def test_a_checkpoint_spares_what_was_finished(machines: Cluster, tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()

    def halve(engine: Any, number: int) -> tuple[Any, float]:
        (marks / f"{number}-{time.time()}").touch()
        return np.full(engine.n, number), number / 2

    kept = Cluster(machines.client, checkpoint=tmp_path / "kept")
    engine = random_case(0, n=20).graph.to(kept).engine
    parts = [(i,) for i in range(4)]
    list(engine.map_columns(halve, parts[1:3]))
    results = list(engine.map_columns(halve, parts))
    assert [half for _, half in results] == [0.0, 0.5, 1.0, 1.5]
    np.testing.assert_array_equal(results[2][0], np.full(20, 2))
    assert len(list(marks.iterdir())) == 4


def test_a_worker_too_small_for_the_graph_is_refused_with_a_remedy(
    machines: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cluster, "memory", lambda _: 1000)
    graph = random_case(0, n=20).graph.to(Cluster(machines.client, partition="columns"))
    with pytest.raises(ClusterError, match="partition='rows'"):
        list(graph.engine.map_columns(max, [(1,)]))


def test_a_graph_leaves_its_cluster_behind_when_pickled(machines: Cluster) -> None:
    graph = pickle.loads(pickle.dumps(random_case(0, n=20).graph.to(machines)))
    assert graph.engine_name == "auto"


def test_local_workers_listen_on_this_machine_alone(machines: Cluster) -> None:
    assert all("//127.0.0.1:" in address for address in (machines.address, machines.dashboard, *machines.workers()))


@pytest.mark.parametrize("where", ["local:none", "local:0"])
def test_a_wrong_number_of_workers_is_refused(where: str) -> None:
    with pytest.raises(InvalidInputError, match="local:4"):
        gm.cluster(where)


def test_nobody_at_an_address_is_told() -> None:
    with pytest.raises(ClusterError, match="no Dask scheduler answers"):
        gm.cluster("tcp://127.0.0.1:9", timeout="300ms")


def test_too_few_workers_are_told(machines: Cluster) -> None:
    with pytest.raises(ClusterError, match="50 workers are needed"):
        gm.cluster(machines.client, workers=50, timeout="100ms")


def test_workers_read_edges_from_a_url() -> None:
    with fsspec.open("memory://bucket/edges/0.parquet", "wb") as stream:
        pd.DataFrame({"source": [0, 1], "target": [1, 2]}).to_parquet(stream)
    settings: Any = {"n_workers": 1, "processes": False, "dashboard_address": None}  # in this process, as its memory is
    with distributed.LocalCluster(**settings) as inside, distributed.Client(inside, set_as_default=False) as client:
        made = Cluster(client, partition="rows")
        assert gm.Graph.from_parquet("memory://bucket/edges", n_nodes=3, cluster=made).degrees.tolist() == [1, 2, 1]
        made.close()


def test_a_scheduler_that_is_gone_is_told() -> None:
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as inside:
        client = distributed.Client(inside, set_as_default=False)
        engine = random_case(0, n=20).graph.to(client).engine
        inside.close()
        with pytest.raises(ClusterError, match="is gone"):
            list(engine.map_columns(max, [(1,)]))
        client.close()


def test_other_versions_on_a_worker_are_told(machines: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = machines.client.get_versions(packages=["graphmrf", "numpy", "scipy", "distributed"])
    next(iter(found["workers"].values()))["packages"]["numpy"] = None
    monkeypatch.setattr(machines.client, "get_versions", lambda **_: found)
    with pytest.raises(ClusterError, match=r"worker tcp://.* has numpy not installed instead of \d"):
        gm.cluster(machines.client)


def test_memory_counts_edges_and_blocks() -> None:
    graph = random_case(0, n=20).graph
    few = column_bytes((graph.indptr, graph.indices, None, graph.degrees))
    weighted = column_bytes((graph.indptr, graph.indices, np.ones(graph.indices.size), graph.degrees))
    assert weighted - few == 8 * graph.indices.size
