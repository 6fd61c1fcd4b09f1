"""The kernel in which a submission is graded; nbgrader_config.py starts it, one for each student.

It is IPython's kernel with three things more.

- Tests run beside the notebook, not in it.  They come compiled, over a line of their own, and see the given names as
  they were given, Python's own functions, and the student's answers.  Nothing that a notebook can hang into IPython
  touches them, and functions of NumPy, SciPy, SymPy and `lib` are put back first.
- An answer must be a plain value: an object of a class from the notebook could agree with every test, and is refused.
- Memory is limited; no file can be written outside a scratch folder, and none in the hidden folders can be read; there
  are no other processes and no network.  On Linux the system sees to the files (Landlock); elsewhere only Python's own
  audit hook does.

A student's code and the tests still share one process.  This makes cheating laborious; it does not make it impossible.
"""

import _thread
import base64
import builtins
import copy
import ctypes
import gc
import importlib
import json
import marshal
import os
import socket
import sys
import types
from multiprocessing.connection import Connection
from pathlib import Path

GUARDED = {"builtins", "math", "cmath", "operator", "numpy", "scipy", "sympy", "mpmath", "lib"}
BLOCKED = {
    "gc.get_objects",
    "gc.get_referents",
    "gc.get_referrers",
    "os.exec",
    "os.fork",
    "os.forkpty",
    "os.kill",
    "os.killpg",
    "os.posix_spawn",
    "os.spawn",
    "os.system",
    "pty.spawn",
    "socket.connect",
    "socket.getaddrinfo",
    "subprocess.Popen",
    "sys._current_frames",
    "sys.addaudithook",
    "sys.setprofile",
    "sys.settrace",
}
READING = {"open", "os.listdir", "os.scandir", "os.chdir", "sqlite3.connect"}
WRITING = {"os.chmod", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.truncate"}
INSIDES = {"__code__", "__defaults__", "__kwdefaults__"}  # of a function
MISSING = object()


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
    create, add, restrict = 444, 445, 446
    write, read = 1 << 1, 1 << 2
    change = write | sum(1 << bit for bit in range(4, 13))  # and remove and make files and folders of all kinds
    if system.syscall(create, None, 0, 1) < 1:  # the version
        return False

    class Handled(ctypes.Structure):
        _fields_ = [("files", ctypes.c_uint64)]

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = [("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32)]

    rules = system.syscall(create, ctypes.byref(Handled(read | change)), ctypes.sizeof(Handled), 0)

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
    no_new_privileges = 38
    return system.prctl(no_new_privileges, 1, 0, 0, 0) == 0 and system.syscall(restrict, rules, 0) == 0


def watch(hidden, scratch, kept_functions):
    """An audit hook, which Python cannot take off again."""
    realpath, fsdecode, writes = os.path.realpath, os.fsdecode, os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

    def within(path, folders):
        return any(path == folder or path.startswith(folder + "/") for folder in folders)

    def hook(event, arguments):
        if event in BLOCKED:
            raise PermissionError(f"{event} is closed while a submission is graded")
        if event == "object.__setattr__" and arguments[1] in INSIDES and id(arguments[0]) in kept_functions:
            raise PermissionError("functions of the libraries stay as they are while a submission is graded")
        if event in READING or event in WRITING:
            changes = event in WRITING or (event == "open" and isinstance(arguments[2], int) and arguments[2] & writes)
            for argument in arguments[: 2 if event in WRITING else 1]:
                if not isinstance(argument, str | bytes | os.PathLike):
                    continue
                path = realpath(fsdecode(argument))
                if within(path, hidden) or (changes and not within(path, (scratch, "/dev"))):
                    raise PermissionError(f"{path} is closed while a submission is graded")

    sys.addaudithook(hook)


def read_compiled_code_only():
    """Numba keeps machine code beside the modules of `lib`: what is there is used, what is compiled now is not kept."""
    if "numba" not in sys.modules:
        return
    from numba.core import caching

    save = caching.Cache.save_overload

    def save_if_allowed(self, signature, data):
        try:
            save(self, signature, data)
        except OSError:
            pass  # the compiled code stays in memory

    caching.Cache.save_overload = save_if_allowed


# What tests rely on


class Kept:
    """Modules and their classes and functions as they are now, to be put back later."""

    def __init__(self, chosen):
        tops = GUARDED | {name.split(".")[0] for name in chosen}
        self.modules = {
            name: (module, type(module), dict(vars(module)))
            for name, module in sys.modules.items()
            if name.split(".")[0] in tops and isinstance(module, types.ModuleType)
        }
        self.near = [name for name in self.modules if name in chosen or name.split(".")[0] in ("lib", "builtins")]
        self.classes, self.functions = {}, {}
        for _, _, names in self.modules.values():
            for value in names.values():
                self._keep(value, tops)
        self.known = {}  # classes by their identity
        waiting = [object]
        while waiting:
            for found in type.__subclasses__(waiting.pop()):
                if id(found) not in self.known:
                    self.known[id(found)] = found
                    waiting.append(found)
        self.tops = tops

    def _keep(self, value, tops):
        if isinstance(value, types.FunctionType):
            self.functions[id(value)] = value
        elif isinstance(value, type) and id(value) not in self.classes and str(value.__module__).split(".")[0] in tops:
            own = dict(vars(value))
            heap = 1 << 9  # classes made by Python code; others cannot be changed
            if value.__flags__ & heap:
                calls = types.FunctionType | property | classmethod | staticmethod
                self.classes[id(value)] = value, {name: one for name, one in own.items() if isinstance(one, calls)}
            for one in own.values():
                one = getattr(one, "__func__", one)
                if isinstance(one, types.FunctionType):
                    self.functions[id(one)] = one

    def put_back(self):
        for name, (module, kind, _) in self.modules.items():
            if sys.modules.get(name) is not module:
                sys.modules[name] = module
            if type(module) is not kind:
                module.__class__ = kind
        self._names(self.modules)
        for value, own in self.classes.values():
            now = vars(value)
            for name, one in own.items():
                if now.get(name, MISSING) is not one:
                    type.__setattr__(value, name, one)

    def put_back_near(self):
        """The same for what a test calls itself: cheap enough for every call."""
        self._names(self.near)

    def _names(self, chosen):
        for name in chosen:
            module, _, saved = self.modules[name]
            now = vars(module)
            for key, value in saved.items():
                if now.get(key, MISSING) is not value:
                    now[key] = value

    def plain(self, value):
        """The value, if it is made of classes that are not the notebook's own."""
        kind = type(value)
        if id(kind) not in self.known and not self._came_later(kind):
            base = next((base for base in (tuple, list, dict) if isinstance(value, base)), None)
            if base is None:
                raise AssertionError(
                    f"{kind.__name__} is a class of this notebook: give plain numbers, arrays, lists, tuples or "
                    "expressions"
                )
            value = base(base.items(value) if base is dict else base.__iter__(value))
        if isinstance(value, tuple | list | set):
            inside = [self.plain(one) for one in value]
            if any(new is not old for new, old in zip(inside, value, strict=True)):
                value = inside if isinstance(value, list) else tuple(inside)
        elif isinstance(value, dict):
            for one in value.values():
                self.plain(one)
        elif kind.__module__ == "numpy" and getattr(value, "dtype", None) == object:  # noqa: E721 - a subclass is another type
            for one in value.ravel():
                self.plain(one)
        elif str(kind.__module__).startswith("sympy."):
            for part in getattr(value, "args", ()):
                self.plain(part)
        return value

    def _came_later(self, kind):
        """Whether a class is from a part of a guarded library that was imported after the start."""
        name = str(kind.__module__)
        module = sys.modules.get(name)
        if module is None or name in self.modules or name.split(".")[0] not in self.tops:
            return False
        found = vars(module).get(kind.__qualname__)
        if found is kind:
            self.known[id(kind)] = kind
        return found is kind


# The kernel


class Tests:
    """Runs given cells and tests as they come over the line."""

    def __init__(self, line, kept, notebook):
        self.line, self.kept, self.notebook = line, kept, notebook
        self.given, self.python = {}, dict(vars(builtins))

    def serve(self):
        while True:
            try:
                asked = json.loads(self.line.recv_bytes())
            except (EOFError, OSError):
                os._exit(0)
            answer = {"number": asked["number"]}
            self.kept.put_back()
            if asked["do"] == "given":
                answer["done"] = self._learn(asked)
            elif asked["do"] == "adopt":
                self.given |= {name: self.notebook[name] for name in asked["names"] if name in self.notebook}
            elif asked["do"] == "test":
                answer |= self._apply(asked)
            self.line.send_bytes(json.dumps(answer).encode())

    def _learn(self, asked):
        """Run a given cell for the tests, and let the notebook have a copy of what it defines; whether it ran."""
        self.given["__builtins__"] = self.python
        try:
            exec(marshal.loads(base64.b64decode(asked["code"])), self.given)
        except Exception:  # it may need an answer
            return False
        for name in asked["names"]:
            if name in self.given:
                try:
                    self.notebook[name] = copy.deepcopy(self.given[name])
                except Exception:  # a module
                    self.notebook[name] = self.given[name]
        return True

    def _apply(self, asked):
        names = {name: value for name, value in self.notebook.items() if name not in self.python}
        names |= self.given
        names |= {"__builtins__": dict(self.python), "__plain__": self._answer, "__returned__": self._returned}
        try:
            exec(marshal.loads(base64.b64decode(asked["code"])), names)
        except BaseException as problem:
            try:
                said = str(problem)
            except BaseException:
                said = ""
            return {"ename": str(type(problem).__name__), "evalue": said[:2000]}
        finally:
            self.notebook |= {name: names[name] for name in asked["names"] if name in names}
        return {}

    def _returned(self, value):
        self.kept.put_back_near()
        return self._answer(value)

    def _answer(self, value):
        return self._in_given_symbols(self.kept.plain(value))

    def _in_given_symbols(self, value):
        """An answer in symbols of the student's own, named like the given ones: the same in those of the problem.

        In the student's notebook they have taken the place of the given ones, and the checks there use them too.
        """
        sympy = sys.modules.get("sympy")
        if type(value) in (list, tuple):
            inside = list(map(self._in_given_symbols, value))
            same = all(new is old for new, old in zip(inside, value, strict=True))
            return value if same else type(value)(inside)  # a test may append to its own list
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


def main():
    del sys.path[0]  # the course
    told = json.loads(os.environ.pop("GUARDED_KERNEL"))
    for name in told["modules"]:
        try:
            importlib.import_module(name)
        except ImportError:
            pass  # a name in a module, which is listed beside it
    read_compiled_code_only()
    from ipykernel.kernelapp import IPKernelApp
    from ipykernel.zmqshell import ZMQInteractiveShell

    end = socket.socket(socket.AF_UNIX)
    end.connect(told["address"])
    line = Connection(end.detach())
    line.send_bytes(told["key"].encode())
    hidden = [os.path.realpath(folder) for folder in told["hidden"]]
    scratch = os.path.realpath(told["scratch"])
    kept = Kept(told["modules"])
    limit_memory(told["memory"])
    close_files(hidden, scratch)
    ZMQInteractiveShell.ask_exit = lambda self: None  # exit() and quit() stop nothing: what comes after them is graded
    application = IPKernelApp.instance()
    application.initialize(sys.argv[1:])
    tests = Tests(line, kept, application.shell.user_ns)
    watch(hidden, scratch, kept.functions)
    gc.freeze()
    _thread.stack_size(64 * 2**20)
    _thread.start_new_thread(tests.serve, ())
    _thread.stack_size(0)
    application.start()


if __name__ == "__main__":
    main()
