"""A tiny published data set, and a server on this machine that sends its files well or badly."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pandas as pd

from graphmrf_paper.dataset import Attribute, Files, Info, Recipe, Tables

NODES, EDGES = "tiny/nodes.csv", "tiny/edges.csv"
CONTENT = {
    NODES: b"node,code,y\n0,007,1.5\n1,008,\n2,009,3.25\n",
    EDGES: b"u,v\n0,1\n1,2\n",
}


def tiny() -> Recipe:
    """Return the recipe of three nodes on a path."""
    files = {path: hashlib.sha256(content).hexdigest() for path, content in CONTENT.items()}
    info = Info("tiny", "Three nodes", 3, 2, (Attribute("y", "m", "height"),), ("y",), "this test", "none")
    return Recipe(info, files, _clean)


def _clean(files: Files) -> Tables:
    return {"nodes": pd.read_csv(files[NODES], dtype={"code": "str"}), "edges": pd.read_csv(files[EDGES])}


def write_raw(folder: Path) -> Path:
    """Write the raw files as a user would have them."""
    for path, content in CONTENT.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


@dataclass
class Mirror:
    """What a server sends for each path, how many bytes of it it withholds, and what it was asked for."""

    content: dict[str, bytes]
    withheld: dict[str, int] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def serve(content: dict[str, bytes]) -> Iterator[Mirror]:
    """Serve the content on the loopback interface while the context lasts."""
    mirror = Mirror(dict(content))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.lstrip("/")
            mirror.asked.append(path)
            if path not in mirror.content:
                self.send_error(404)
                return
            body = mirror.content[path]
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) - mirror.withheld.get(path, 0)])

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    mirror.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield mirror
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
