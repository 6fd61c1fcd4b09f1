"""The pieces of a MyST page as the site's own parser finds them: text, code, equations, targets and directives."""

import re
from dataclasses import dataclass, field

from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser

EXTENSIONS = {"amsmath", "colon_fence", "deflist", "dollarmath"}  # as in _config.yml
DIRECTIVE = re.compile(r"\{([^}\s]+)\} *(.*)")
OPTION = re.compile(r":([\w-]+): *(.*)")
ENVIRONMENT = re.compile(r"\s*\\begin\{([^}]+)\}")
LEFT_OUT = {"front_matter", "myst_line_comment", "myst_block_break"}
PARSER = create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), RendererHTML)
PARSER.core.ruler.enableOnly(["normalize", "block"])


@dataclass(frozen=True)
class Block:
    """One piece; ``kind`` is text, heading, code, math, environment, target, comment or directive.

    ``text`` is what stands inside, without fences; ``name`` a directive's or an environment's name, or the label of an
    equation or a target; ``argument`` what follows a directive's name, a code's language, a heading's words.
    """

    kind: str
    text: str
    name: str = ""
    argument: str = ""
    options: dict = field(default_factory=dict)
    indent: str = ""


def blocks(text):
    """The pieces of a page, or of a directive's content, in order; what stands between two others is one text."""
    lines, at = text.split("\n"), 0
    tokens = PARSER.parse(text)
    for token, after in zip(tokens, [*tokens[1:], None]):
        found = _piece(token, after)
        if found is not None and token.map[0] >= at:
            start, end = token.map
            end += token.type == "amsmath"  # whose map stops before its last line
            if start > at:
                yield Block("text", "\n".join(lines[at:start]))
            first = lines[start]
            yield Block(**found, indent=first[: len(first) - len(first.lstrip(" "))])
            at = end
    if at < len(lines):
        yield Block("text", "\n".join(lines[at:]))


def every(text):
    """The pieces of a page and of the directives in it, in the order in which they are read."""
    for block in blocks(text):
        yield block
        if block.kind == "directive":
            yield from every(block.text)


def _piece(token, after):
    """What a token of the parser is, as the arguments of a block; None for a part of the text."""
    content = token.content
    if token.type in ("fence", "colon_fence"):
        directive = DIRECTIVE.fullmatch(token.info.strip())
        if directive is None:
            return {"kind": "code", "text": content.removesuffix("\n"), "argument": token.info.strip()}
        inside, options = content.split("\n"), {}
        while inside and (option := OPTION.fullmatch(inside[0])):
            options[option[1]] = option[2].strip()
            inside.pop(0)
        text = "\n".join(inside).strip("\n")
        return {"kind": "directive", "text": text, "name": directive[1], "argument": directive[2], "options": options}
    if token.type in ("math_block", "math_block_label"):
        return {"kind": "math", "text": content.strip(), "name": token.info}
    if token.type == "amsmath":
        return {"kind": "environment", "text": content, "name": ENVIRONMENT.match(content)[1]}
    if token.type == "myst_target":
        return {"kind": "target", "text": "", "name": content}
    if token.type == "heading_open":
        return {"kind": "heading", "text": f"{token.markup} {after.content}", "argument": after.content}
    return {"kind": "comment", "text": ""} if token.type in LEFT_OUT else None
