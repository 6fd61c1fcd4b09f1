"""Settings of the course: nbgrader reads this file where its commands run, in the course folder.

Three things differ from nbgrader's own ways: a cell that never ends or kills its kernel costs its own points only;
tests run where a notebook cannot easily reach them (see guarded_kernel.py, beside this file); and feedback shows no
hidden test.
"""

import ast
import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import warnings
from multiprocessing.connection import Connection
from pathlib import Path

from nbclient.exceptions import CellTimeoutError, DeadKernelError
from nbformat.v4 import new_output
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.preprocessors import ClearHiddenTests, Execute
from nbgrader.utils import is_grade, is_locked, is_solution
from traitlets import Float

STOPPED = (CellTimeoutError, DeadKernelError)
COURSE = Path(__file__).resolve().parent
KERNEL = str(COURSE / "guarded_kernel.py")
HIDDEN = re.compile(r"### BEGIN HIDDEN TESTS\n(.*?)### END HIDDEN TESTS", re.S)
warnings.filterwarnings("ignore", module="nbgrader")  # SQLAlchemy's, about nbgrader's queries


def is_test(cell):
    return cell.cell_type == "code" and is_grade(cell) and not is_solution(cell)


def is_given(cell):
    return cell.cell_type == "code" and is_locked(cell) and not is_grade(cell)


def parsed(source):
    try:
        return ast.parse(source)
    except SyntaxError:  # a command of IPython
        return ast.parse("")


def imported(tree):
    """The modules that code imports, and the names that it gives them."""
    modules, names = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
            names |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {alias.asname or alias.name for alias in node.names}
    return modules, names


def defined(tree):
    """The names that code binds outside functions."""
    found = set(imported(tree)[1])
    for statement in tree.body:
        if isinstance(statement, ast.FunctionDef | ast.ClassDef):
            found.add(statement.name)
        else:
            nodes = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            found |= {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
    return found


class GuardedExecute(Execute):
    """Runs the cells of a submission one by one; where one stops the kernel, goes on in a new one.

    The new kernel runs again what came before, except for tests, which define nothing, and for cells that stopped a
    kernel.
    """

    memory = Float(4.0, help="how much memory answers may use, in GiB, beyond what the libraries take").tag(config=True)
    interrupt_on_timeout = False  # a loop may catch the interrupt: a cell out of time loses its kernel
    shutdown_kernel = "immediate"

    def preprocess(self, nb, resources, km=None):
        self.stopped, self.line, self.tests = set(), None, None
        self.student = resources.get("nbgrader", {}).get("student", "")
        trees = [parsed(cell.source) for cell in nb.cells if is_given(cell) or is_test(cell)]
        self.modules = sorted(set().union(*(imported(tree)[0] for tree in trees)))
        with tempfile.TemporaryDirectory() as scratch:
            self.scratch = scratch
            try:
                return super().preprocess(nb, resources, km)
            finally:
                self._hang_up()

    def create_kernel_manager(self):
        manager = super().create_kernel_manager()
        manager.kernel_spec.argv = [sys.executable, KERNEL, "-f", "{connection_file}", "--log-level=ERROR"]
        return manager

    def start_new_kernel(self, **options):
        """Start the tests' process, and the student's, which calls it before the first cell runs."""
        self._hang_up()
        told = {
            "address": os.path.join(self.scratch, "line"),
            "memory": self.memory,
            "scratch": self.scratch,
            "modules": self.modules,
            "student": self.student,
            "hidden": [str(folder) for folder in hidden_folders()],
        }
        environment = os.environ | dict.fromkeys(("TMPDIR", "IPYTHONDIR", "MPLCONFIGDIR"), self.scratch)
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        mine, theirs = socket.socketpair()
        with theirs:
            for_tests = environment | {"GUARDED_KERNEL": json.dumps(told | {"grader": theirs.fileno()})}
            places = {"cwd": self.scratch, "pass_fds": [theirs.fileno()]}
            self.tests = subprocess.Popen([sys.executable, KERNEL], env=for_tests, **places)
        self.line = Connection(mine.detach())
        self.line.recv_bytes()
        options |= {"cwd": self.scratch, "env": environment | {"GUARDED_KERNEL": json.dumps(told)}}
        super().start_new_kernel(**options)

    def _hang_up(self):
        if self.tests is not None:
            self.line.close()
            self.tests.kill()
            self.tests.wait()
            self.tests = None

    def preprocess_cell(self, cell, resources, index):
        if cell.cell_type == "code":
            try:
                self._run(cell, resources, index)
            except STOPPED as problem:
                self._give_up(index, problem)
                self._start_again(index)
            for output in cell.get("outputs", []):
                if output.output_type == "stream":
                    output.name = "stdout"  # nbgrader takes whatever is on stderr, a warning too, for a failure
        return cell, resources

    def _run(self, cell, resources, index):
        if is_test(cell):
            hidden = "\n".join(HIDDEN.findall(cell.source))
            seen = defined(parsed(HIDDEN.sub("", cell.source))) - defined(parsed(hidden))
            answer = self._ask("test", cell.source, sorted(seen))
            cell.outputs, cell.execution_count = [], None
            if "ename" in answer:
                text = ": ".join(part for part in (answer["ename"], answer["evalue"]) if part)
                cell.outputs = [new_output("error", **answer, traceback=[text])]
            return
        super().preprocess_cell(cell, resources, index)
        if is_given(cell) and parsed(cell.source).body:
            self._ask("given", cell.source, sorted(defined(parsed(cell.source))))

    def _ask(self, *request):
        """Let the tests' process run a cell, and wait for its answer."""
        try:
            self.line.send_bytes(json.dumps(request).encode())
            answer = json.loads(self.line.recv_bytes()) if self.line.poll(self.timeout) else None
        except (EOFError, OSError):
            raise DeadKernelError("the tests' process died") from None
        if answer is None:
            raise CellTimeoutError("no answer")
        if "lost" in answer:
            raise DeadKernelError("the kernel died")
        return answer

    def _give_up(self, index, problem):
        self.stopped.add(index)
        reason = f"stopped after {self.timeout} s" if isinstance(problem, CellTimeoutError) else "the kernel died"
        words = {"ename": type(problem).__name__, "evalue": reason, "traceback": [f"This cell did not end: {reason}."]}
        self.nb.cells[index].outputs = [new_output("error", **words)]

    def _start_again(self, end):
        """A new kernel in the state before the cell `end`."""
        while True:
            self._cleanup_kernel()
            self.km = self.create_kernel_manager()
            self.start_new_kernel()
            self.start_new_kernel_client()
            for index, cell in enumerate(self.nb.cells[:end]):
                if index in self.stopped or cell.cell_type != "code" or is_test(cell):
                    continue
                try:
                    self._run(cell, {}, index)
                except STOPPED as problem:  # it ended the first time, but may not always
                    self._give_up(index, problem)
                    break
            else:
                return


def hidden_folders():
    """What student code must not read: the course, and where a checkout of the book keeps solutions."""
    found = [COURSE]
    book = importlib.util.find_spec("lib")
    if book is not None:
        root = Path(book.submodule_search_locations[0]).parent
        found += [root / "book" / "assignments", root / ".git", root / "_build"]
    return [folder for folder in found if folder.exists()]


class HideTests(ClearHiddenTests):
    """Takes hidden tests out of the feedback, wherever a notebook shows them; what a test says in words stays."""

    longest = 200  # characters of a message

    def preprocess(self, nb, resources):
        hidden = "\n".join(part for cell in nb.cells if is_test(cell) for part in HIDDEN.findall(cell.source))
        lines = {line.strip() for line in hidden.split("\n")}
        shown = {line.strip() for cell in nb.cells for line in HIDDEN.sub("", cell.source).split("\n")}
        self.secrets = [self._squeezed(line) for line in lines - shown if len(line) >= 15]
        return super().preprocess(nb, resources)

    @staticmethod
    def _squeezed(text):
        """A text without what `repr` or JSON change in it."""
        return re.sub(r"\\n|[\s\\'\"]", "", text)

    def _tells(self, text):
        text = self._squeezed(text)
        return any(secret in text for secret in self.secrets)

    def preprocess_cell(self, cell, resources, index):
        test = is_test(cell)
        cell, resources = super().preprocess_cell(cell, resources, index)
        if cell.cell_type != "code":
            return cell, resources
        if test:
            cell.outputs = [output for output in cell.outputs if output.output_type == "error"]
        for number, output in enumerate(cell.outputs):
            if test:
                output.evalue = output.evalue[: self.longest]
                output.traceback = [": ".join(part for part in (output.ename[: self.longest], output.evalue) if part)]
            if self._tells(json.dumps(output, ensure_ascii=False)):
                words = "Withheld: this output shows a hidden test."
                cell.outputs[number] = new_output("error", ename="Withheld", evalue="", traceback=[words])
        return cell, resources


def tidy(assignment, student, notebooks):
    """Before grading: a single notebook under another name gets its own name back, what a student's program did to the
    cells is mended, and one that cannot be read is named.
    """
    for place, path in enumerate(map(Path, list(notebooks))):
        wanted = path.with_name(f"{path.parent.name}.ipynb")
        if len(notebooks) == 1 and not wanted.exists():
            notebooks[place] = str(path.rename(wanted))
            print(f"{path.parent}: {path.name!r} is graded as {wanted.name!r}", file=sys.stderr)
        try:
            _mend(Path(notebooks[place]))
        except (OSError, ValueError, AttributeError, KeyError, TypeError):
            said = f"{notebooks[place]} CANNOT BE READ as a notebook: it is not graded; ask for it again"
            print(said, file=sys.stderr)


def _mend(path):
    """Give the cells of a submission what the student edition says of them, and say what was mended.

    A cell that was split or copied is there twice: the first keeps its name, and all of them run.  What nbgrader says
    of a cell may be damaged; a cell that the student edition does not know is the student's own.
    """
    text = path.read_text(encoding="utf-8-sig")  # some editors put a mark before the text
    notebook, edition = json.loads(text), COURSE / "release" / path.parent.name / path.name
    known = {}
    if edition.is_file():
        cells = json.loads(edition.read_text(encoding="utf-8"))["cells"]
        known = {cell["metadata"]["nbgrader"]["grade_id"]: cell["metadata"] for cell in cells if _named(cell)}
    seen, said = set(), []
    for cell in notebook["cells"]:
        if "nbgrader" not in cell["metadata"]:
            continue
        name = cell["metadata"]["nbgrader"].get("grade_id")
        if name in seen or (known and name not in known):
            del cell["metadata"]["nbgrader"]
            twice = f"the cell {name!r} is there more than once: the first is graded, all are run"
            said.append(twice if name in seen else f"a cell named {name!r} is not of this set: it runs, ungraded")
        elif known and cell["metadata"]["nbgrader"] != known[name]["nbgrader"]:
            cell["metadata"]["nbgrader"] = known[name]["nbgrader"]
            said.append(f"what the cell {name!r} says of itself was damaged, and is restored")
        seen.add(name)
    if said or not path.read_bytes().startswith(text[:1].encode()):
        path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1), encoding="utf-8")
    print("".join(f"{path}: {sentence}\n" for sentence in said), end="", file=sys.stderr)


def _named(cell):
    return "grade_id" in cell["metadata"].get("nbgrader", {})


c = get_config()  # noqa: F821 - the configuration loader defines it
usual = Autograde.class_traits()["autograde_preprocessors"].default()
c.Autograde.autograde_preprocessors = [GuardedExecute if one is Execute else one for one in usual]
c.GenerateFeedback.preprocessors = [HideTests, *GenerateFeedback.class_traits()["preprocessors"].default()]
c.Autograde.pre_convert_hook = tidy
c.GuardedExecute.timeout = 30  # seconds for each cell
c.GuardedExecute.startup_timeout = 3600  # a machine that is busy with a class starts kernels slowly
c.GuardedExecute.memory = 4.0  # GiB
c.OverwriteCells.add_missing_cells = True  # a test that was deleted is put back
