"""What the pages about the library are made of: definitions and their places, names that modules take over, the order
of the packages.
"""

import pytest

from tools.build import project
from tools.site import library


def write(folder, **texts):
    """A lib with the package "fields" of the modules given."""
    (folder / "lib" / "fields").mkdir(parents=True, exist_ok=True)
    (folder / "lib" / "__init__.py").touch()
    (folder / "lib" / "fields" / "__init__.py").write_text('"""Green."""')
    for name, text in texts.items():
        (folder / "lib" / "fields" / f"{name}.py").write_text(text)
    return library.modules(folder)


def test_public_definitions_are_found_with_their_lines(tmp_path):
    function = 'def f(x):\n    """Add one:  x + 1.\n\n    More."""\n    return x\n'
    rest = "\n\ndef _g():\n    pass\n\n\n@a\n@b\nclass C:\n    def m(self):\n        pass\n"
    module = write(tmp_path, x=f'"""What it is.\n\nMore."""\n\n{function}{rest}')["fields.x"]
    assert module.summary == "What it is" and module.page == "library/fields.x"
    assert (module.file, module.tests) == ("lib/fields/x.py", "tests/fields/test_x.py")
    places = {item.name: (item.first, item.last) for item in module.definitions.values()}
    assert places == {"f": (5, 9), "C": (16, 20), "C.m": (19, 20)}
    assert module.definitions["f"].summary == "Add one"


def test_names_are_followed_to_the_module_that_defines_them(tmp_path):
    first = "def f():\n    pass\n\n\nLIMIT = 3\n"
    modules = write(
        tmp_path,
        a=first,
        b="from lib.fields.a import f as g, LIMIT\n",
        c="from lib.fields import a\nfrom lib.fields.b import g\n",
    )
    for module, name in (("fields.a", "f"), ("fields.b", "g"), ("fields.c", "g")):
        home, definition = library.find(modules, module, name)
        assert (home.name, definition.name) == ("fields.a", "f")
    assert library.find(modules, "fields.b", "LIMIT") is None
    assert library.find(modules, "fields.c", "a") is None and library.find(modules, "fields.d", "f") is None


def test_anchors_differ_within_every_module():
    for module in library.modules(project.ROOT).values():
        anchors = [library.anchor(name) for name in module.definitions]
        assert len(set(anchors)) == len(anchors), module.name
    assert library.anchor("power_law") == "power-law"


def test_packages_come_in_reading_order_and_what_they_alone_use_comes_last(tmp_path):
    names = list(write(tmp_path, _a="", b="", c=""))
    assert library.packages(tmp_path, names) == [("Green", ["fields.b", "fields.c", "fields._a"])]


def test_package_that_the_list_does_not_know_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"lib holds \['garden'\], which tools/site/library.py does not list"):
        library.packages(tmp_path, ["garden.rose"])


def test_list_of_this_library_has_every_module_once():
    names = list(library.modules(project.ROOT))
    listed = [name for _, group in library.packages(project.ROOT, names) for name in group]
    assert sorted(listed) == names and len(names) > 50
