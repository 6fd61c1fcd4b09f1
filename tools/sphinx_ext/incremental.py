"""Which pages Sphinx reads and writes again when it kept what an earlier build had read and written.

A notebook is read again when its text or its executed form changed.  The other pages are quick to read and show what
lies outside them (the ledger, the library, times of chapters), so that they are read in every build.  What was read is
written.  All pages are written when something changed that pages show of each other: a title, a number, the target of a
reference, the order.
"""

import hashlib
import pickle
from pathlib import Path

from docutils import nodes
from sphinx.application import ENV_PICKLE_FILENAME

from tools.build import project

SHOWN = ["titles", "longtitles", "toc_secnumbers", "toc_fignumbers", "toctree_includes", "proof_list"]  # of `env`
DOMAINS = ["std", "math", "prf"]  # what references lead to, beside the bibliography


def outdated(app, env, added, changed, removed):
    """The pages to read again; `env` remembers the sum of every notebook's outputs."""
    executed = Path(app.srcdir) / "_build" / "notebooks"
    before, env.book_outputs = getattr(env, "book_outputs", {}), {}
    again = []
    for name in env.found_docs:
        if not project.is_notebook(Path(env.doc2path(name))):
            again.append(name)
        elif (file := executed / f"{name}.ipynb").exists():
            env.book_outputs[name] = hashlib.sha256(file.read_bytes()).hexdigest()
        if env.book_outputs.get(name) != before.get(name):
            again.append(name)
    return again


def plain(value):
    """A value without addresses in memory and without chance in its order."""
    if isinstance(value, nodes.Node):
        return value.pformat() if isinstance(value, nodes.Element) else value.astext()
    if isinstance(value, dict):
        return sorted((repr(plain(key)), plain(item)) for key, item in value.items())
    if isinstance(value, (set, frozenset)):
        return sorted(repr(plain(item)) for item in value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return plain(vars(value)) if hasattr(value, "__dict__") else repr(value)


def inventory(env):
    """A sum over what pages show of each other."""
    seen = {name: getattr(env, name, None) for name in SHOWN}
    seen |= {name: env.domaindata[name] for name in DOMAINS}
    seen["cited"] = [(found.key, found.citation_id) for found in env.domaindata["cite"]["citations"]]
    return hashlib.sha256(repr(plain(seen)).encode()).hexdigest()


def written(app, env):
    """All pages if what they show of each other changed; these were read alone, and are written side by side."""
    app.parallel = app.book_workers
    before, env.book_inventory = getattr(env, "book_inventory", None), inventory(env)
    return list(env.found_docs) if env.book_inventory != before else []


def read_alone(app):
    """Pages are read one by one: the registry of boxed results cannot be merged."""
    app.book_workers, app.parallel = app.parallel, 1


def keep(app, error):
    """Keep what the search index learnt of every page while it was written; Sphinx keeps what it knew before."""
    if error is None:
        with (Path(app.doctreedir) / ENV_PICKLE_FILENAME).open("wb") as file:
            pickle.dump(app.env, file, pickle.HIGHEST_PROTOCOL)


def setup(app):
    app.connect("build-finished", keep)
    app.connect("builder-inited", read_alone)
    app.connect("env-get-outdated", outdated)
    app.connect("env-get-updated", written, priority=900)  # after the numbers are given
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
