"""The pieces of a MyST page: text, code, equations, targets and directives, found line by line."""

import re
from dataclasses import dataclass, field

FENCE = re.compile(r"( *)(:{3,}|`{3,})(?:\{([^}\s]+)\})? *(.*)")
OPTION = re.compile(r":([\w-]+): *(.*)")
TARGET = re.compile(r"\(([^()\s]+)\)= *")
ENVIRONMENT = re.compile(r" *\\begin\{((?:align|alignat|equation|eqnarray|gather|multline)(\*?))\}")
LAST_LINE = re.compile(r"(.*?)\$\$(?: *\(([^()\s]+)\))? *")  # of an equation, with its label


@dataclass(frozen=True)
class Block:
    """One piece.  ``kind`` is text, code, math, environment, target or directive; ``text`` is what stands inside,
    without fences.

    ``name`` is a directive's or an environment's name, or the label of an equation or a target.
    """

    kind: str
    text: str
    name: str = ""
    argument: str = ""
    options: dict = field(default_factory=dict)
    indent: str = ""


def blocks(text):
    """The pieces of a page, or of a directive's content, in order; consecutive lines of text are one piece."""
    lines, prose = text.split("\n"), []
    at = 0
    while at < len(lines):
        block, after = _special(lines, at)
        if block is None:
            prose.append(lines[at])
        else:
            if prose:
                yield Block("text", "\n".join(prose))
                prose = []
            yield block
        at = after
    if prose:
        yield Block("text", "\n".join(prose))


def every(text):
    """The pieces of a page and of the directives in it, in the order in which they are read."""
    for block in blocks(text):
        yield block
        if block.kind == "directive":
            yield from every(block.text)


def _special(lines, at):
    """The piece that begins at a line, or None for a line of text, and the number of the line after it."""
    line = lines[at]
    if match := FENCE.fullmatch(line):
        return _fenced(lines, at, *match.groups())
    if line.lstrip().startswith("$$"):
        return _equation(lines, at)
    if match := ENVIRONMENT.match(line):
        end = next((n for n in range(at, len(lines)) if f"\\end{{{match[1]}}}" in lines[n]), len(lines) - 1)
        return Block("environment", "\n".join(lines[at : end + 1]), match[1], indent=_indent(line)), end + 1
    if match := TARGET.fullmatch(line):
        return Block("target", "", match[1]), at + 1
    return None, at + 1


def _indent(line):
    return line[: len(line) - len(line.lstrip())]


def _fenced(lines, at, indent, fence, name, argument):
    def closes(line):
        line = line.strip()
        return len(line) >= len(fence) and set(line) == {fence[0]}

    end = next((n for n in range(at + 1, len(lines)) if closes(lines[n])), len(lines))
    inside = [line.removeprefix(indent) for line in lines[at + 1 : end]]
    if name is None:
        return Block("code", "\n".join(inside), argument=argument, indent=indent), end + 1
    options = {}
    while inside and (match := OPTION.fullmatch(inside[0])):
        options[match[1]] = match[2].strip()
        inside.pop(0)
    return Block("directive", "\n".join(inside).strip("\n"), name, argument, options, indent), end + 1


def _equation(lines, at):
    indent = _indent(lines[at])
    first = lines[at].strip().removeprefix("$$")
    inside = []
    for end in range(at, len(lines)):
        line = first if end == at else lines[end].removeprefix(indent)
        if match := LAST_LINE.fullmatch(line):
            return Block("math", "\n".join([*inside, match[1]]).strip(), match[2] or "", indent=indent), end + 1
        inside.append(line)
    return None, at + 1  # not an equation: the dollars are never closed
