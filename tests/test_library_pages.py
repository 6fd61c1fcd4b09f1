"""What the pages about the library are made of: definitions and their places, names that modules take over, the groups of the map."""

import ast

import pytest

import lib
from tools import library, project

PARTS = {"I": "Part I: Roots", "II": "Part II: Stems", "III": "Part III: Leaves"}


def write(folder, **texts):
    (folder / "lib").mkdir(exist_ok=True)
    (folder / "lib" / "__init__.py").touch()
    for name, text in texts.items():
        (folder / "lib" / f"{name}.py").write_text(text)
    return library.modules(folder)


def test_public_definitions_are_found_with_their_lines(tmp_path):
    function = 'def f(x):\n    """Add one:  x + 1.\n\n    More."""\n    return x\n'
    rest = "\n\ndef _g():\n    pass\n\n\n@a\n@b\nclass C:\n    def m(self):\n        pass\n"
    module = write(tmp_path, x=f'"""What it is.\n\nMore."""\n\n{function}{rest}')["x"]
    assert module.summary == "What it is" and module.page == "library/x"
    places = {item.name: (item.first, item.last) for item in module.definitions.values()}
    assert places == {"f": (5, 9), "C": (16, 20), "C.m": (19, 20)}
    assert module.definitions["f"].summary == "Add one"


def test_names_are_followed_to_the_module_that_defines_them(tmp_path):
    first = "def f():\n    pass\n\n\nLIMIT = 3\n"
    modules = write(tmp_path, a=first, b="from lib.a import f as g, LIMIT\n", c="from lib import a\nfrom lib.b import g\n")
    for module, name in (("a", "f"), ("b", "g"), ("c", "g")):
        home, definition = library.find(modules, module, name)
        assert (home.name, definition.name) == ("a", "f")
    assert library.find(modules, "b", "LIMIT") is None
    assert library.find(modules, "c", "a") is None and library.find(modules, "d", "f") is None


@pytest.mark.parametrize(
    ("statement", "wanted"),
    [
        ("from lib import a, b as c", {"a": ("a", None), "c": ("b", None)}),
        ("from lib.a import f as g", {"g": ("a", "f")}),
        ("import lib", {"lib": (None, None)}),
        ("import lib.a", {"lib": (None, None)}),
        ("import lib.a as b, numpy", {"b": ("a", None)}),
        ("from library import a", {}),
    ],
)
def test_imports_are_read(statement, wanted):
    assert library.imports_of(ast.parse(statement).body[0]) == wanted


def test_anchors_differ_within_every_module():
    for module in library.modules(project.ROOT).values():
        anchors = [library.anchor(name) for name in module.definitions]
        assert len(set(anchors)) == len(anchors), module.name
    assert library.anchor("power_law") == "power-law"


MAP = """The package.

    a, b        first things                 (book: A chapter)
      -> c      built on them                (the same chapter)
    d           leaves  (part III: Green)
      -> e      more, with its simulator k
    f           stems   (book, part II: Brown)
    g           late, but green              (Green)
    h           services: all sorts
    _i          checks

Words after it.
"""
NAMES = ["_i", "_j", *"abcdefghk"]


def test_map_is_cut_into_groups_in_the_order_of_the_book():
    found = {group.title: group.entries for group in library.groups(MAP, PARTS, NAMES)}
    assert list(found.items()) == [
        ("Part I: Roots", [(0, "a"), (0, "b"), (1, "c")]),
        ("Part II: Stems", [(0, "f")]),
        ("Part III: Leaves", [(0, "d"), (1, "e"), (2, "k"), (0, "g")]),
        ("Services", [(0, "h")]),
        ("Behind the public modules", [(0, "_i"), (0, "_j")]),
    ]


def test_part_that_the_book_does_not_have_is_named():
    with pytest.raises(ValueError, match="names part III, which is no caption of _toc.yml: mend the map"):
        library.groups(MAP, {"I": "Part I", "II": "Part II"}, NAMES)


def test_module_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"names \['h'\], but there are no such modules"):
        library.groups(MAP, PARTS, [name for name in NAMES if name != "h"])


def test_map_of_this_library_has_every_module_once():
    parts = {number: number for number in ("I", "II", "III", "IV", "V", "VI", "VII")}
    names = list(library.modules(project.ROOT))
    listed = library.groups(lib.__doc__, parts, names)
    assert sorted(name for group in listed for _, name in group.entries) == sorted(names)
    assert all(name.startswith("_") for _, name in listed[-1].entries)
