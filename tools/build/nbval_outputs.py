"""A pytest plugin: what the kernel answers under nbval is written into the notebook, so that it need not run again.

nbval reads a cell's outputs and forgets them.  Here they are kept as a Run All would leave them, once every code cell
of a notebook has passed.
"""

import time

import nbformat
import pytest
from nbformat.v4 import output_from_msg
from nbval.plugin import IPyNbCell

from tools.build import project

SECONDS = "execution_seconds"  # in the metadata of a notebook that was executed from its first cell to its last
_OUTPUTS = {"display_data", "error", "execute_result", "stream"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Listen to the kernel while nbval does, and keep what a passing cell put out.

    nbval stores no history; without it a semicolon at the end of a cell does not silence it, and nothing is counted.
    """
    if not isinstance(item, IPyNbCell):
        return (yield)
    book, messages = item.parent, []
    item.output_timeout = project.HOUR  # nbval's five seconds are none on a machine that others load
    client, read = book.kernel.kc, type(book).get_kernel_message
    client.execute = lambda code, **options: type(client).execute(client, code, **options | {"store_history": True})
    book.get_kernel_message = lambda **options: messages.append(read(book, **options)) or messages[-1]
    started = time.perf_counter()
    try:
        result = yield
    finally:
        del book.get_kernel_message, client.execute
    done = book.nb.metadata.setdefault("done", [])
    done.append(time.perf_counter() - started)
    item.cell.execution_count = len(done)
    item.cell.outputs = [output_from_msg(message) for message in _of_cell(messages)]
    return result


def _of_cell(messages):
    """The outputs among the kernel's messages that answer the cell's request."""
    asked = {m["parent_header"]["msg_id"] for m in messages if m["msg_type"] == "execute_input"}
    return [m for m in messages if m["msg_type"] in _OUTPUTS and m["parent_header"].get("msg_id") in asked]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item, nextitem):
    """After the last cell of a notebook, and before its kernel is stopped, write what was kept."""
    last = isinstance(item, IPyNbCell) and (nextitem is None or nextitem.parent is not item.parent)
    if last:
        book = item.parent
        done = book.nb.metadata.pop("done", [])
        if len(done) == sum(cell.cell_type == "code" for cell in book.nb.cells):
            reply = book.kernel.kc.kernel_info(reply=True, timeout=project.HOUR)
            book.nb.metadata["language_info"] = reply["content"]["language_info"]
            book.nb.metadata[SECONDS] = sum(done)
            nbformat.write(book.nb, book.path)
    return (yield)
