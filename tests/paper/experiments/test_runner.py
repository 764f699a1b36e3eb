import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

import small_paper
from graphmrf.cli import app
from graphmrf.errors import GraphMRFError
from graphmrf_paper import runner
from graphmrf_paper.accuracy import transductive
from graphmrf_paper.runner import execute, open_journal, pending
from graphmrf_paper.runs import Options, Result, Run

pytestmark = pytest.mark.slow

RUNS = [
    Run.of(transductive, {"data": "us-2016", "outcome": outcome, "method": method, "seed": seed, "fraction": 0.3})
    for outcome in ("income", "education")
    for method in ("LP", "LR", "LGC")
    for seed in (1, 2)
]
BROKEN = Run.of(transductive, {"data": "us-2016", "outcome": "nothing", "method": "LP", "seed": 1, "fraction": 0.3})


def done(path: Path, runs: list[Run], *, jobs: int = 2) -> dict[str, Result]:
    with open_journal(path) as kept:
        assert not execute(runs, kept, None, jobs=jobs, watch=lambda _: None)
        return kept.results


def keys(path: Path) -> list[str]:
    return [json.loads(line)["key"] for line in path.read_text().splitlines()[1:]]


def test_results_do_not_depend_on_the_number_of_processes(tmp_path: Path) -> None:
    one, two = (done(tmp_path / f"{jobs}.jsonl", RUNS, jobs=jobs) for jobs in (1, 2))
    assert one == two


def test_nothing_is_repeated_and_nothing_is_lost(results: Path) -> None:
    first = done(results, RUNS[:5])
    second = done(results, [*RUNS, *RUNS])
    assert sorted(keys(results)) == sorted(run.key for run in RUNS)
    assert {key: second[key] for key in first} == first


def test_a_run_that_fails_leaves_the_others_alone_and_is_tried_again(results: Path) -> None:
    ended: list[Run] = []
    with open_journal(results) as kept:
        failures = execute([BROKEN, *RUNS[:3]], kept, None, jobs=2, watch=ended.append)
        assert list(failures) == [BROKEN.key]
        assert "nothing" in failures[BROKEN.key]
        assert pending([BROKEN, *RUNS[:3]], kept) == (BROKEN,)
    assert len(ended) == 4


def test_runs_are_submitted_to_the_executor_given(tmp_path: Path) -> None:
    def invert(_: str | None, options: Options) -> Result:
        return {"inverse": 1 / options["number"]}

    runs = [Run.of(invert, {"number": number}) for number in (2, 0, 4)]
    with open_journal(tmp_path / "r.jsonl") as kept, ThreadPoolExecutor(1) as pool:
        failures = execute(runs, kept, None, jobs=1, watch=lambda _: None, executor=pool)
        assert list(failures) == ["invert number=0"]
        assert [result["inverse"] for result in kept.results.values()] == [0.5, 0.25]


def test_a_worker_that_is_killed_is_reported_and_what_is_done_is_kept(results: Path) -> None:
    before = set(psutil.Process().children(recursive=True))

    def kill_a_worker(_: Run) -> None:
        for child in set(psutil.Process().children(recursive=True)) - before:
            with suppress(psutil.NoSuchProcess):  # one that ends by itself meanwhile
                if "spawn_main" in " ".join(child.cmdline()):
                    child.kill()

    with open_journal(results) as kept:
        with pytest.raises(GraphMRFError, match="killed, perhaps for want of memory; what was finished is kept"):
            execute(RUNS * 1, kept, None, jobs=1, watch=kill_a_worker)
        assert kept.results
    assert len(done(results, RUNS)) == len(RUNS)


WORDS = ("reproduce", "omega-lp", "--quick", "--jobs", "1", "--no-figures", "--quiet", "--output")


@contextmanager
def command(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    arguments = ["-c", "from graphmrf.cli import main; main()", *WORDS, str(folder)]
    environment = {**os.environ, "GRAPHMRF_CACHE": str(folder.parent / "cache")}
    with subprocess.Popen([sys.executable, *arguments], env=environment) as process:
        yield process


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None and (not path.exists() or path.read_bytes().count(b"\n") < count):
        time.sleep(0.005)


def test_killed_at_a_random_moment_it_ends_like_an_undisturbed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    small_paper.keep_synthetic(tmp_path / "cache")
    monkeypatch.setenv("GRAPHMRF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(runner, "process_pool", lambda _: ThreadPoolExecutor(1))  # quicker than processes of its own
    assert CliRunner().invoke(app, [*WORDS, str(whole)]).exit_code == 0
    with command(broken) as process:  # `make torture` does so hundreds of times
        wait_for_lines(broken / "results.jsonl", random.Random(7).randrange(2, 50), process)
        workers = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not alive, "processes outlive the command that started them"
    with command(broken) as last:
        assert last.wait(300) == 0
    assert len(keys(broken / "results.jsonl")) == len(set(keys(broken / "results.jsonl"))) == 52
    for name in ("index.html", "reproduction.md"):
        text = (broken / name).read_text().replace("/broken", "/whole")  # the path may be shortened
        assert timeless(text) == timeless((whole / name).read_text())
    found, expected = (
        {
            key: value
            for line in (folder / "results.jsonl").read_text().splitlines()[1:]
            for key, value in [_entry(line)]
        }
        for folder in (broken, whole)
    )
    assert found == expected


def timeless(text: str) -> str:
    return re.sub(r"[\d.]+ (seconds?|minutes?|hours?)", "some time", text)


def _entry(line: str) -> tuple[str, object]:
    record = json.loads(line)
    return record["key"], record["result"]
