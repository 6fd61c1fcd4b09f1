"""A JupyterLab server of one's own, for what a launch opens."""

import json
import secrets
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

import psutil

from tools.build import project


class LaunchFailed(Exception):
    """The book cannot be launched; the message says where it stopped."""


@dataclass(frozen=True)
class Server:
    """A running JupyterLab; made by :func:`running`, which ends it."""

    process: psutil.Popen
    address: str
    token: str

    def ask(self, path):
        """The answer of the server's REST interface, read from JSON; URLError where nobody answers."""
        request = Request(f"{self.address}/api/{path}", headers={"Authorization": f"token {self.token}"})
        try:
            with build_opener(ProxyHandler({})).open(request, timeout=project.HOUR) as answer:
                return json.loads(answer.read())
        except HTTPError as problem:
            raise LaunchFailed(f"the server answered {problem.code} to {path}: {problem.read(300).decode()}") from None

    def answers(self):
        try:
            return bool(self.ask("status"))
        except URLError:
            return False


@contextmanager
def running(folder, book, environment, start=()):
    """Start JupyterLab in a folder, through the command ``start`` if one is given, and end it with its kernels.

    The log is kept in ``folder``.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    token, log = secrets.token_hex(16), folder / "server.log"
    command = [*start, shutil.which("jupyter", path=environment["PATH"]), "lab", "--allow-root", "--no-browser"]
    command += ["--ip=127.0.0.1", f"--port={port}", "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}"]
    with log.open("w") as file:
        process = psutil.Popen(command, cwd=book, env=environment, stdout=file, stderr=subprocess.STDOUT)
    try:
        server = Server(process, f"http://127.0.0.1:{port}", token)
        while not server.answers():
            if process.poll() is not None:
                last = "\n".join(log.read_text().splitlines()[-15:])
                raise LaunchFailed(f"the server did not start; its last lines were\n{last}")
            time.sleep(0.2)
        yield server
    finally:
        end(process)


def end(process):
    """End a process and all below it, the deaf ones too."""
    if process.poll() is None:
        family = [*process.children(recursive=True), process]
        process.terminate()
        for one in psutil.wait_procs(family, timeout=30)[1]:
            one.kill()
        psutil.wait_procs(family)


def memory(*processes):
    """Bytes that processes and all below them hold; shared pages are counted once where the system tells (Linux)."""
    total = 0
    for process in processes:
        try:
            infos = [one.memory_full_info() for one in [process, *process.children(recursive=True)]]
        except psutil.NoSuchProcess:  # it has just ended
            continue
        total += sum(getattr(info, "pss", info.uss) for info in infos)
    return total
