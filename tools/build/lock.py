"""Write the second half of ``requirements.txt``: the exact version of everything that the first half needs.

``python -m tools.build.lock`` reads the direct requirements, follows their dependencies through the running
environment, and pins what it finds.  The tests hold the file and the environment together.
"""

import re
from importlib.metadata import PackageNotFoundError, distribution

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.build import project

INDIRECT = "# Indirect: what those need, pinned by `python -m tools.build.lock`."
# Builds of torch for an accelerator bring their own run-time libraries; the lock serves every platform without them.
ACCELERATOR = re.compile(r"nvidia-|cuda-|triton")


def pins(text):
    """The pinned requirements of a text that apply to this platform: a dict from canonical name to version."""
    found = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            requirement = Requirement(line)
            (pin,) = requirement.specifier
            if pin.operator != "==":
                raise ValueError(f"requirements.txt must pin every version with ==, got {line!r}")
            if requirement.marker is None or requirement.marker.evaluate():
                found[canonicalize_name(requirement.name)] = pin.version
    return found


def split(text):
    """The direct and the indirect pins of ``requirements.txt``."""
    direct, _, indirect = text.partition(INDIRECT)
    return pins(direct), pins(indirect)


def closure(direct):
    """Every distribution that the direct ones need in the running environment: a dict from name to public version."""
    found = {}
    queue = [(name, frozenset()) for name in direct]
    seen = set(queue)
    while queue:
        name, extras = queue.pop()
        installed = distribution(name)
        found[name] = installed.version.partition("+")[0]
        for text in installed.requires or []:
            need = Requirement(text)
            if need.marker and not any(need.marker.evaluate({"extra": extra}) for extra in extras or {""}):
                continue
            item = (canonicalize_name(need.name), frozenset(need.extras))
            if item not in seen and not ACCELERATOR.match(item[0]):
                seen.add(item)
                queue.append(item)
    return found


def main():
    path = project.ROOT / "requirements.txt"
    text = path.read_text(encoding="utf-8")
    direct, _ = split(text)
    try:
        needed = closure(direct)
    except PackageNotFoundError as missing:
        raise SystemExit(f"{missing} is not installed: install the direct requirements first") from None
    held = text.partition(INDIRECT)[2].splitlines()
    elsewhere = [line for line in held if ";" in line]  # what another platform needs, written by hand
    lines = sorted([f"{name}=={version}" for name, version in needed.items() if name not in direct] + elsewhere)
    path.write_text("\n".join([text.partition(INDIRECT)[0] + INDIRECT, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
