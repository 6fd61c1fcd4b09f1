"""Every work that the book cites can be reached by a link, or says that none was verified."""

import re

import pytest
from pybtex.database import parse_file

from tools.build import project

WORKS = parse_file(project.ROOT / "book" / "references.bib", bib_format="bibtex").entries
FORMS = {"doi": r"10\.\d{4,9}/\S+", "eprint": r"\d{4}\.\d{4,5}|[a-z-]+/\d{7}", "url": r"https://\S+"}
NOT_VERIFIED = "Not verified: "


@pytest.mark.parametrize("key", WORKS)
def test_a_work_has_a_link_or_says_that_none_was_verified(key):
    fields = WORKS[key].fields
    links = {name: fields[name] for name in FORMS if name in fields}
    assert links or NOT_VERIFIED in fields.get("note", "")
    assert all(re.fullmatch(FORMS[name], value) for name, value in links.items()), links
    assert ("eprint" in links) == (fields.get("archivePrefix") == "arXiv")
    told_twice = {name: value for name, value in fields.items() if re.search(r"arXiv:|doi[:.]", value)}
    assert not told_twice, "a number that is a link belongs into a field of its own"


def test_no_link_is_given_to_two_works():
    links = [fields[name] for fields in (work.fields for work in WORKS.values()) for name in FORMS if name in fields]
    assert len(set(links)) == len(links)
