"""Printed pages put together: bookmarks, page numbers, links between pages and to the published site."""

import io

import pytest
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, FloatObject, NameObject, StreamObject, TextStringObject

from tools.build import project
from tools.release import pdf
from tools.site import chapters, written

SERVER, ONLINE = "http://127.0.0.1:1234/mine", "https://someone.github.io/mine/"
LINKS = ["book/b.html#second", "book/b.html", "book/elsewhere.html#x", "notebooks.zip"]


def file(sheets, links=(), places=()):
    """A PDF as Chromium prints a page of the site: links on its first sheet, and named places (name, sheet, height)."""
    writer = PdfWriter()
    for _ in range(sheets):
        sheet = writer.add_blank_page(595, 842)
        sheet[NameObject("/Contents")] = writer._add_object(StreamObject())
    notes = []
    for link in links:
        note = {"/Subtype": NameObject("/Link"), "/Rect": ArrayObject(map(FloatObject, (0, 0, 9, 9)))}
        if link.startswith("#"):
            note["/Dest"] = NameObject(f"/{link[1:]}")
        else:
            uri = {"/S": NameObject("/URI"), "/URI": TextStringObject(link)}
            note["/A"] = DictionaryObject({NameObject(key): value for key, value in uri.items()})
        notes.append(DictionaryObject({NameObject(key): value for key, value in note.items()}))
    writer.pages[0][NameObject("/Annots")] = ArrayObject(notes)
    ends = DictionaryObject()
    for name, sheet, height in places:
        where = [writer.pages[sheet].indirect_reference, NameObject("/XYZ"), *map(FloatObject, (0, height, 0))]
        ends[NameObject(f"/{name}")] = ArrayObject(where)
    writer._root_object[NameObject("/Dests")] = ends
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


@pytest.fixture
def groups():
    links = ["#own", *(f"{SERVER}/{link}" for link in LINKS), "https://doi.org/10.1/x"]
    first = pdf.Print("book/a", "1. A (first)", [("1.1. Own", "own")], file(2, links, [("own", 1, 700)]))
    second = pdf.Print("book/b", "2. B", [("2.1. Second", "second")], file(3, (), [("second", 2, 500)]))
    return {"": [first], "Part I: Ends": [second]}


def merged(groups, online=None):
    return pdf.merge("The Book", file(1), groups, SERVER, online)


def test_a_bookmark_leads_to_each_part_chapter_and_section(groups):
    book = PdfReader(io.BytesIO(merged(groups)))

    def flat(outline):
        return [
            flat(one) if isinstance(one, list) else (one.title, book.get_destination_page_number(one))
            for one in outline
        ]

    assert flat(book.outline) == [
        *[("1. A (first)", 1), [("1.1. Own", 2)]],
        *[("Part I: Ends", 3), [("2. B", 3), [("2.1. Second", 5)]]],
    ]
    assert book.metadata.title == "The Book"


def test_every_sheet_has_its_title_and_number(groups):
    sheets = [sheet.extract_text().split("\n") for sheet in PdfReader(io.BytesIO(merged(groups))).pages]
    titles = ["The Book", *["1. A (first)"] * 2, *["2. B"] * 3]
    assert [" ".join(lines).split() for lines in sheets] == [
        [*title.split(), str(number)] for number, title in enumerate(titles, 1)
    ]


@pytest.mark.parametrize("online", [None, ONLINE])
def test_a_link_leads_into_the_file_or_to_the_published_site_or_is_gone(groups, online):
    book = PdfReader(io.BytesIO(merged(groups, online)))
    number = {sheet.indirect_reference.idnum: place for place, sheet in enumerate(book.pages)}
    notes = [note.get_object() for note in book.pages[1]["/Annots"]]
    ends = [(number[note["/Dest"][0].idnum], note["/Dest"][3]) for note in notes if "/Dest" in note]
    assert ends == [(2, 700), (5, 500), (3, 842)]
    outside = [note["/A"]["/URI"] for note in notes if "/A" in note]
    published = [f"{ONLINE}book/elsewhere.html#x", f"{ONLINE}notebooks.zip"]
    assert outside == [*(published if online else []), "https://doi.org/10.1/x"]


def test_the_same_prints_give_the_same_file(groups):
    made = merged(groups)
    assert made == merged(groups) and b"/CreationDate" not in made and SERVER.encode() not in made


def test_chapters_are_printed_and_what_is_searched_is_not():
    printed = [page for pages in pdf.parts(project.ROOT).values() for page in pages]
    pages = project.toc_pages(project.ROOT)
    assert printed == [page for page in pages if page in printed] and printed[0] == "book/index"
    left = set(pages) - set(printed)
    assert set(chapters.chapters(project.ROOT)) <= set(printed) and "book/ledger" in left


def test_files_are_offered_where_they_are(tmp_path, monkeypatch):
    monkeypatch.setattr(chapters, "chapters", lambda root: {"a": type("", (), {"part": "Part I: Ends of it"})})
    here = written.Here(tmp_path, "book/how-to-read", [])
    assert written.pdf_files(here) == ""
    (tmp_path / "_build" / "pdf").mkdir(parents=True)
    (tmp_path / "_build" / "pdf" / written.pdf_name()).write_bytes(bytes(2_500_000))
    assert "`the whole book <pdf/the-physics-of-learning.pdf>` (2.5 MB)." in written.pdf_files(here)
    (tmp_path / "_build" / "pdf" / "part-i-ends-of-it.pdf").write_bytes(b"")
    assert "`Part I Ends of it <pdf/part-i-ends-of-it.pdf>`" in written.pdf_files(here)
    assert written.pdf_name("Back matter") is None


def test_without_a_browser_or_a_site_a_sentence_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(pdf.browser, "find", lambda: None)
    with pytest.raises(pdf.BuildFailed, match="there is no Chromium; install it, or set CHROMIUM to one"):
        pdf.offer(tmp_path)
    monkeypatch.setattr(pdf.browser, "find", lambda: "chromium")
    with pytest.raises(pdf.BuildFailed, match="holds no built site; run `make book` first"):
        pdf.offer(tmp_path)
