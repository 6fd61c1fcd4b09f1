"""The two processes that grade a submission; nbgrader_config.py starts them anew for each student.

A notebook runs in the first, IPython's kernel.  The tests run in the second, which the notebook cannot reach: given
cells define their own names there, and what a test takes from the student comes over a line.  Plain values come as
copies; a function stays where it is and is called there, with copies of its arguments.  So neither the code of a test
nor what it compares with is ever in the student's process, and nothing that is changed there changes a test.  The name
``student_name`` is there whose submission it is, whatever the notebook says: given cells may draw numbers from it.

An answer must be a plain value: an object of a class from the notebook could agree with every test, and is refused.

In both, memory is limited; no file can be written outside a scratch folder, and none in the hidden folders can be read;
there are no other processes and no network.  On Linux the system sees to the files (Landlock); elsewhere only Python's
own audit hook does.
"""

import _thread
import builtins
import ctypes
import importlib
import io
import json
import os
import pickle
import socket
import sys
from multiprocessing.connection import Connection
from pathlib import Path

import cloudpickle

BLOCKED = {"os.exec", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.posix_spawn", "os.spawn", "os.system"}
BLOCKED |= {"pty.spawn", "socket.connect", "socket.getaddrinfo", "subprocess.Popen"}
READING = {"open", "os.listdir", "os.scandir", "os.chdir", "sqlite3.connect"}
WRITING = {"os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"}


# Files, processes, memory


def limit_memory(gibibytes):
    """Let the process grow by so much, and no more; where the system cannot tell its size, by nothing."""
    import resource

    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + int(gibibytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (OSError, ValueError):
        pass  # macOS does not have this limit


def close_files(hidden, scratch):
    """Ask Linux to let this process read everything but the hidden folders, and write to the scratch folder only;
    whether it does.

    A Landlock rule can allow a folder, not forbid one: so all neighbors of the hidden folders and of the folders above
    them are allowed.
    """
    if not sys.platform.startswith("linux"):
        return False
    system = ctypes.CDLL(None, use_errno=True)
    create, add, restrict, no_new_privileges = 444, 445, 446, 38
    write, read = 1 << 1, 1 << 2
    change = write | sum(1 << bit for bit in range(4, 13))  # and remove and make files and folders of all kinds
    if system.syscall(create, None, 0, 1) < 1:  # the version
        return False

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]

    rules = system.syscall(create, ctypes.byref(ctypes.c_uint64(read | change)), 8, 0)

    def allow(place, rights):
        try:
            handle = os.open(place, os.O_PATH)
        except OSError:  # not there, or not ours to open: nothing to allow
            return
        rights &= -1 if os.path.isdir(place) else read | write
        system.syscall(add, rules, 1, ctypes.byref(Beneath(rights, handle)), 0)
        os.close(handle)

    def allow_around(place):
        for entry in os.scandir(place):
            inside = [folder for folder in hidden if folder == entry.path or folder.startswith(entry.path + os.sep)]
            if entry.is_symlink():
                continue  # what it leads to has a rule of its own, or none
            if not inside:
                allow(entry.path, read)
            elif entry.path not in inside:
                allow_around(entry.path)

    allow_around("/")
    allow(scratch, read | change)
    allow("/dev", read | change)
    return system.prctl(no_new_privileges, 1, 0, 0, 0) == 0 and system.syscall(restrict, rules, 0) == 0


def watch(hidden, scratch):
    """An audit hook, which Python cannot take off again."""
    realpath, fsdecode, writes = os.path.realpath, os.fsdecode, os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

    def within(path, folders):
        return any(path == folder or path.startswith(folder + "/") for folder in folders)

    def hook(event, arguments):
        if event in BLOCKED:
            raise PermissionError(f"{event} is closed while a submission is graded")
        if event in READING or event in WRITING:
            changes = event in WRITING or (event == "open" and isinstance(arguments[2], int) and arguments[2] & writes)
            for argument in arguments[: 2 if event in WRITING else 1]:
                if not isinstance(argument, str | bytes | os.PathLike):
                    continue
                path = realpath(fsdecode(argument))
                if within(path, hidden) or (changes and not within(path, (scratch, "/dev"))):
                    raise PermissionError(f"{path} is closed while a submission is graded")

    sys.addaudithook(hook)


def guard(told):
    """Import what the set needs, and close the rest to this process."""
    for name in told["modules"]:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # a name in a module, which is listed beside it
    if "lib.common.extras" in sys.modules:
        sys.modules["lib.common.extras"].load()
    if "numba" in sys.modules:  # it keeps machine code beside the modules of `lib`: what is there is used
        from numba.core import caching

        save = caching.Cache.save_overload

        def save_if_allowed(self, signature, data):
            try:
                save(self, signature, data)
            except OSError:
                pass  # the compiled code stays in memory

        caching.Cache.save_overload = save_if_allowed
    hidden = [os.path.realpath(folder) for folder in told["hidden"]]
    scratch = os.path.realpath(told["scratch"])
    limit_memory(told["memory"])
    close_files(hidden, scratch)
    return lambda: watch(hidden, scratch)


# The student's side: what it has is named, copied or called


class Student:
    """Answers the tests' requests from the notebook's names."""

    def __init__(self, line, notebook):
        self.line, self.notebook, self.functions = line, notebook, []

    def serve(self):
        while True:
            try:
                what, *rest = _read(self.line.recv_bytes(), lambda number: self.functions[number])
            except (EOFError, OSError):
                os._exit(0)
            try:
                answer = getattr(self, what)(*rest)
            except BaseException as problem:
                kind = next(one for one in type(problem).__mro__ if one.__module__ == "builtins")
                answer = pickle.dumps(("raised", kind.__name__, _words(problem)))
            self.line.send_bytes(answer)

    def name(self, name):
        return self._told(self.notebook[name]) if name in self.notebook else pickle.dumps(("absent",))

    def learn(self, names):
        self.notebook |= names
        return pickle.dumps(("value", None, {}))

    def call(self, number, arguments, options):
        before = [one.copy() if type(one).__name__ == "ndarray" else one for one in arguments]
        value = self.functions[number](*arguments, **options)
        kept = enumerate(zip(before, arguments, strict=True))
        changed = {k: now for k, (old, now) in kept if old is not now and old.tobytes() != now.tobytes()}
        return self._told(value, changed)

    def _told(self, value, changed=None):
        if callable(value) and not isinstance(value, type) and not hasattr(value, "free_symbols"):
            self.functions.append(value)
            return pickle.dumps(("function", len(self.functions) - 1, changed or {}))
        return pickle.dumps(("value", _bare(value), changed or {}))


def _bare(value):
    """A list, tuple or dict of a class of its own becomes a bare one; what it holds, too."""
    if isinstance(value, list | tuple):
        inside = [_bare(one) for one in value]
        return inside if isinstance(value, list) else tuple(inside)
    return {key: _bare(one) for key, one in value.items()} if isinstance(value, dict) else value


def _words(problem):
    try:
        return str(problem)[:2000]
    except BaseException:
        return ""


# The tests' side


class Lost(BaseException):
    """The student's process is gone."""


class Function:
    """A function of the student, called where it is."""

    def __init__(self, line, number, take):
        self._line, self._number, self._take = line, number, take

    def __call__(self, *arguments, **options):
        value, changed = ask(self._line, self._take, "call", self._number, arguments, options)
        for place, now in changed.items():
            arguments[place][...] = now  # as if the array had been there itself
        return value


class Writer(cloudpickle.Pickler):
    """Copies arguments, the tests' own functions too; a student's function goes back as its number."""

    def persistent_id(self, value):
        return value._number if type(value) is Function else None


class Reader(pickle.Unpickler):
    """Reads plain values: numbers, arrays, expressions, and what Python and the libraries put them into."""

    known = {"numpy", "scipy", "sympy", "mpmath", "lib", "collections", "fractions", "decimal"}
    making = {"_reconstruct", "scalar", "_frombuffer", "__newobj__", "__newobj_ex__"}
    making |= {"_reconstructor", "mpf", "make_mpf"}

    def find_class(self, module, name):
        top = module.split(".")[0]
        plain = ("complex", "set", "frozenset", "range", "slice", "bytearray", "object", "float", "int")
        if top == "builtins" and name not in plain:
            raise AssertionError(f"{name} is no plain value: give plain numbers, arrays, lists, tuples or expressions")
        found = super().find_class(module, name) if top in self.known | {"builtins", "copyreg"} else None
        if not isinstance(found, type) and name not in self.making:
            where = "a class of this notebook" if module == "__main__" else f"not of a known library ({module})"
            raise AssertionError(f"{name} is {where}: give plain numbers, arrays, lists, tuples or expressions")
        return found


def _read(data, function):
    reader = pickle.Unpickler(io.BytesIO(data))
    reader.persistent_load = function
    return reader.load()


def ask(line, take, *request):
    """Ask the student's process; what it answers, as a test may use it, and which arrays it changed."""
    written = io.BytesIO()
    Writer(written).dump(request)
    try:
        line.send_bytes(written.getvalue())
        answer = line.recv_bytes()
    except (EOFError, OSError):
        raise Lost from None
    kind, *rest = Reader(io.BytesIO(answer)).load()
    if kind == "raised":
        raised = getattr(builtins, rest[0])
        raise raised(rest[1]) if issubclass(raised, Exception) else RuntimeError(f"{rest[0]}: {rest[1]}")
    if kind == "absent":
        raise KeyError
    value, changed = rest
    return (Function(line, value, take) if kind == "function" else take(value)), changed


class Names(dict):
    """The names that a test sees: Python's, the given ones, and the student's as soon as they are asked for."""

    def __init__(self, given, line, take):
        super().__init__(given)
        self._line, self._take = line, take

    def __missing__(self, name):
        if hasattr(builtins, name):
            raise KeyError(name)
        self[name], _ = ask(self._line, self._take, "name", name)
        return self[name]


class Tests:
    """Runs given cells and tests as the grader sends them."""

    def __init__(self, grader, student, name):
        self.grader, self.student = grader, student
        self.given = {"__name__": "__main__", "student_name": name}

    def serve(self):
        while True:
            try:
                what, code, names = json.loads(self.grader.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)
            answer = {}
            seen = Names(self.given, self.student, self._in_given_symbols)
            try:
                exec(compile(code, f"<{what}>", "exec"), seen)
            except Lost:
                answer = {"lost": True}
            except BaseException as problem:
                answer = {"ename": type(problem).__name__, "evalue": _words(problem)}
            found = {name: seen[name] for name in names if name in seen}
            if what == "given":
                self.given |= found
            elif "lost" not in answer:
                self._show(found)
            self.grader.send_bytes(json.dumps(answer).encode())

    def _show(self, found):
        """Let the notebook have what the visible part of a test defines, as when a student runs it."""
        for name, value in found.items():
            try:
                ask(self.student, self._in_given_symbols, "learn", {name: value})
            except Exception:  # it cannot be copied
                pass

    def _in_given_symbols(self, value):
        """An answer in symbols of the student's own, named like the given ones: the same in those of the problem.

        In the student's notebook they have taken the place of the given ones, and the checks there use them too.
        """
        sympy = sys.modules.get("sympy")
        if type(value) in (list, tuple):
            return type(value)(map(self._in_given_symbols, value))
        if sympy is None or not isinstance(value, sympy.Expr | sympy.MatrixBase):
            return value
        given = {}
        for one in self.given.values():
            if isinstance(one, sympy.Symbol):
                given.setdefault(one.name, set()).add(one)
        own = {symbol: given[symbol.name] for symbol in value.free_symbols if symbol.name in given}
        renamed = {symbol: those.pop() for symbol, those in own.items() if len(those) == 1}
        renamed = {symbol: one for symbol, one in renamed.items() if one != symbol}
        return value.xreplace(renamed) if renamed else value


def run_tests(told):
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(told["address"])
        door.listen(1)
        grader = Connection(told["grader"])
        grader.send_bytes(b"ready")
        student = Connection(door.accept()[0].detach())  # once, and before the first cell runs
    os.unlink(told["address"])
    guard(told)()
    Tests(grader, student, told["student"]).serve()


def run_notebook(told):
    end = socket.socket(socket.AF_UNIX)
    end.connect(told["address"])
    close_the_rest = guard(told)
    from ipykernel.kernelapp import IPKernelApp
    from ipykernel.zmqshell import ZMQInteractiveShell

    ZMQInteractiveShell.ask_exit = lambda self: None  # exit() and quit() stop nothing: what comes after them is graded
    application = IPKernelApp.instance()
    application.initialize(sys.argv[1:])
    close_the_rest()
    _thread.stack_size(64 * 2**20)
    _thread.start_new_thread(Student(Connection(end.detach()), application.shell.user_ns).serve, ())
    _thread.stack_size(0)
    application.start()


if __name__ == "__main__":
    del sys.path[0]  # the course
    told = json.loads(os.environ.pop("GUARDED_KERNEL"))
    (run_tests if "grader" in told else run_notebook)(told)
