"""Run the browser tests of the built site: ``python -m tools.site.browser``, which is ``make browser``.

They drive a Chromium that is installed on this machine; nothing is downloaded.  Without one, a single line says so and
the run counts as passed, so that the other tests still mean something.
"""

import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

from tools.build import faults, project
from tools.site import browser_checks, site_checks

VARIABLE = "CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
# Nothing of the browser's own may use the network; a page that does is caught below.
SWITCHES = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-sync",
    "--no-first-run",
]
PATIENCE = 900_000  # ms: what is waited for is an event; only a browser that died takes so long


def find():
    """Path of an installed Chromium: the one that the variable CHROMIUM names, else the first known name on PATH; None
    if there is none.
    """
    named = os.environ.get(VARIABLE)
    return next(filter(None, map(shutil.which, [named] if named else NAMES)), None)


def missing():
    """The line that says why there is no browser, and what to do."""
    named = os.environ.get(VARIABLE)
    why = f"{VARIABLE}={named} is not a program" if named else f"none of {', '.join(NAMES)} is on PATH"
    return (
        f"!! THE BROWSER TESTS WERE NOT RUN: {why}; install Chromium (on Debian: apt-get install chromium) or "
        f"set {VARIABLE} to one."
    )


class _Handler(SimpleHTTPRequestHandler):
    """Serves a folder below a path, as a host does that gives every repository a path of its own; there is nothing
    outside it.
    """

    def __init__(self, *arguments, prefix, **options):
        self.prefix = prefix
        super().__init__(*arguments, **options)

    def translate_path(self, path):
        if not path.startswith(self.prefix):
            return f"{self.directory}/outside-the-site"
        return super().translate_path(path.removeprefix(self.prefix.rstrip("/")))

    def log_message(self, *arguments):
        """A line for each request would bury the tests' own output."""


class _Server(ThreadingHTTPServer):
    def handle_error(self, request, client_address):
        """A page that is left while it loads closes its connections; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serve(folder, prefix="/"):
    """Serve a folder on a free port that only this machine can reach, below a path with a slash at both ends; yields
    the address.
    """
    with _Server(("127.0.0.1", 0), partial(_Handler, directory=folder, prefix=prefix)) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}{prefix.rstrip('/')}"
        finally:
            server.shutdown()
            thread.join()


def start(playwright):
    """Start the installed Chromium; Playwright's browser, to be closed by the caller."""
    return playwright.chromium.launch(executable_path=find(), args=SWITCHES)


@contextmanager
def opened(browser, server, path, **options):
    """A page of the served site in a fresh window, loaded.

    Yields Playwright's page and a list that grows with every error on its console, every script error, and every
    request that is not for the server; such a request is refused.
    """
    found = []

    def refuse(route):
        found.append(f"the page asked for {route.request.url}, outside the site")
        route.abort()

    def complaint(line):
        if line.type == "error":
            found.append(f"console: {line.text} ({line.location['url']})")

    with browser.new_context(
        **{"viewport": browser_checks.PHONE, "color_scheme": "light", "reduced_motion": "reduce"} | options
    ) as context:
        context.route(re.compile(f"^(?!{re.escape(server)}/)"), refuse)
        page = context.new_page()
        page.on("console", complaint)
        page.on("pageerror", lambda error: found.append(f"script error: {error}"))
        page.on("websocket", lambda socket: found.append(f"the page opened a socket to {socket.url}"))
        page.set_default_timeout(PATIENCE)
        page.goto(f"{server}/{path}")
        yield page, found


def run(root):
    """Run the tests in two processes, one browser each; returns pytest's exit status, 0 where there is no browser."""
    if find() is None:
        print(missing(), flush=True)
        return 0
    if not (site_checks.site_folder(root) / "index.html").is_file():
        sys.exit(
            f"The browser tests were not run: {site_checks.site_folder(root)} holds no built site; run `make "
            "book` first."
        )
    options = ["-p", faults.__name__, "--numprocesses=2", "--durations=5"]
    command = [sys.executable, "-m", "pytest", *options, "tests/browser"]
    return subprocess.run(command, cwd=root, check=False).returncode


def main():
    try:
        sys.exit(run(project.ROOT))
    except KeyboardInterrupt:
        sys.exit("The browser tests were interrupted")


if __name__ == "__main__":
    main()
