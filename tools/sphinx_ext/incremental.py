"""Which pages Sphinx reads and writes again when it kept what an earlier build had read and written.

A page is read again when its text, its executed form, or a file that its directives name changed (the ledger, the
library, times of chapters).  What was read is written.  All pages are written when something changed that pages show of
each other: a title, a number, the target of a reference, the order.
"""

import hashlib
import pickle
from pathlib import Path

from docutils import nodes
from sphinx.application import ENV_PICKLE_FILENAME

SHOWN = ["titles", "longtitles", "toc_secnumbers", "toc_fignumbers", "toctree_includes", "proof_list"]  # of `env`
DOMAINS = ["std", "math", "prf", "py"]  # what references lead to, beside the bibliography


def outdated(app, env, added, changed, removed):
    """The notebooks whose executed form changed, and the first page, without which Sphinx leaves its files uncopied.

    `env` remembers a sum of each notebook."""
    files = {name: Path(app.srcdir) / "_build" / "notebooks" / f"{name}.ipynb" for name in env.found_docs}
    sums = {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items() if file.exists()}
    before, env.book_outputs = getattr(env, "book_outputs", {}), sums
    return [name for name in env.found_docs if sums.get(name) != before.get(name) or name == app.config.root_doc]


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
    app.book_anew = env.book_inventory != before
    return list(env.found_docs) if app.book_anew else []


def read_alone(app):
    """Pages are read one by one: the registry of boxed results cannot be merged."""
    app.book_workers, app.parallel = app.parallel, 1


def keep(app, error):
    """Keep also what was learnt since all pages were read, the inventory; Sphinx keeps what it knew before."""
    if error is None:
        with (Path(app.doctreedir) / ENV_PICKLE_FILENAME).open("wb") as file:
            pickle.dump(app.env, file, pickle.HIGHEST_PROTOCOL)


def setup(app):
    app.connect("build-finished", keep)
    app.connect("builder-inited", read_alone)
    app.connect("env-get-outdated", outdated)
    app.connect("env-get-updated", written, priority=900)  # after the numbers are given
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
