"""A JupyterLab server of one's own: start it, run notebooks through it as a browser would, and watch its memory."""

import json
import secrets
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from uuid import uuid4

import psutil
import websocket

PATIENCE = 600  # seconds that a kernel may be silent


class LaunchFailed(Exception):
    """The book cannot be launched; the message says where it stopped."""


def free_port(wanted):
    """A port that nobody listens on: the wanted one, or any if that is 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as problem:
            raise LaunchFailed(
                f"port {wanted} cannot be used ({problem.strerror}); choose another with --port, or leave it out"
            ) from None
        return probe.getsockname()[1]


def memory(process):
    """Bytes that a process and all below it hold; shared pages are counted once where the system tells (Linux)."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            info = one.memory_full_info()
        except psutil.NoSuchProcess:
            continue
        total += getattr(info, "pss", info.uss)
    return total


@contextmanager
def peak_memory(process):
    """Watch a process tree; the list that this gives holds the largest reading so far."""
    peak, over = [memory(process)], threading.Event()

    def watch():
        while not over.wait(0.2):
            peak[0] = max(peak[0], memory(process))

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


class Server:
    """A running JupyterLab and its address; made by :func:`running`, which ends it."""

    def __init__(self, process, port, token):
        self.process, self.port = process, port
        self.headers = {"Authorization": f"token {token}", "Content-Type": "application/json"}

    def ask(self, method, address, body=None):
        """Ask the server's REST interface; gives the answer, read from JSON."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/api/{address}", data, self.headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                text = answer.read()
        except urllib.error.HTTPError as problem:
            raise LaunchFailed(
                f"the server answered {problem.code} to {method} {address}: {problem.read(300).decode()}"
            ) from None
        return json.loads(text) if text else None


@contextmanager
def running(folder, book, environment, port, start=()):
    """Start JupyterLab in a folder, through the command ``start`` if one is given, and end it with its kernels.

    The log is kept in ``folder``.
    """
    port, token, log = free_port(port), secrets.token_hex(16), folder / "server.log"
    command = [
        *start,
        shutil.which("jupyter", path=environment["PATH"]),
        "lab",
        "--allow-root",
        "--no-browser",
        "--ip=127.0.0.1",
        f"--port={port}",
        "--ServerApp.port_retries=0",
        f"--IdentityProvider.token={token}",
    ]
    with log.open("w") as file:
        process = psutil.Popen(command, cwd=book, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        server, deadline = Server(process, port, token), time.monotonic() + 120
        while not _answers(server):
            if process.poll() is not None or time.monotonic() > deadline:
                raise LaunchFailed(
                    "the server did not start; its last lines were\n" + "\n".join(log.read_text().splitlines()[-15:])
                )
            time.sleep(0.5)
        yield server
    finally:
        _end(process)


def _answers(server):
    try:
        server.ask("GET", "status")
    except urllib.error.URLError:
        return False
    return True


def _end(process):
    """End a process and all below it."""
    if process.poll() is not None:
        return
    family = [*process.children(recursive=True), process]
    process.terminate()
    _, left = psutil.wait_procs(family, timeout=30)
    for one in left:
        one.kill()
    psutil.wait_procs(left)


def play(server, page):
    """Open a page as a notebook, run all its cells in a kernel of the server, and close it; returns how many cells
    ran.
    """
    path = f"{page}.ipynb"
    model = server.ask("GET", f"contents/{path}?type=notebook&content=1")
    if model["type"] != "notebook":
        raise LaunchFailed(f"{path} opens as a {model['type']}, not as a notebook")
    session = server.ask(
        "POST", "sessions", {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
    )
    kernel, me = session["kernel"]["id"], uuid4().hex
    channel = websocket.create_connection(
        f"ws://127.0.0.1:{server.port}/api/kernels/{kernel}/channels?session_id={me}",
        timeout=PATIENCE,
        header=[f"{name}: {value}" for name, value in server.headers.items()],
    )
    try:
        sources = [cell["source"] for cell in model["content"]["cells"] if cell["cell_type"] == "code"]
        for number, source in enumerate(sources, 1):
            error = execute(channel, me, source)
            if error:
                raise LaunchFailed(f"code cell {number} of {path} failed: {error}")
    except (websocket.WebSocketException, OSError) as problem:
        raise LaunchFailed(f"the kernel of {path} was lost ({problem or type(problem).__name__})") from None
    finally:
        channel.close()
    server.ask("DELETE", f"sessions/{session['id']}")  # after a failure the server is ended anyway
    return len(sources)


def execute(channel, session, code):
    """Run one cell over a kernel's channel; returns the error in a line, or None."""
    mine = uuid4().hex
    header = {
        "msg_id": mine,
        "msg_type": "execute_request",
        "username": "reader",
        "session": session,
        "version": "5.3",
        "date": "",
    }
    content = {
        "code": code,
        "silent": False,
        "store_history": True,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": True,
    }
    channel.send(
        json.dumps(
            {
                "header": header,
                "parent_header": {},
                "metadata": {},
                "content": content,
                "buffers": [],
                "channel": "shell",
            }
        )
    )
    error, replied, idle = None, False, False
    while not (replied and idle):
        message = json.loads(channel.recv())
        kind, content = message["header"]["msg_type"], message["content"]
        if kind == "status" and content["execution_state"] in ("restarting", "dead"):
            return "the kernel died"
        if message["parent_header"].get("msg_id") != mine:
            continue
        if kind == "execute_reply":
            replied = True
            error = (
                None
                if content["status"] == "ok"
                else f"{content.get('ename', content['status'])}: {content.get('evalue', '')}"
            )
        idle = idle or kind == "status" and content["execution_state"] == "idle"
    return error
