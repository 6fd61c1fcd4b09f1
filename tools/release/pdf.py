"""Print the built site into PDF files, one for the book and one for each part: ``python -m tools.release.pdf``.

Chromium prints every page as the print style has it (the last block of ``book/_static/book.css``).  The prints are put
together with contents, page numbers and bookmarks; a link to a page in the same file leads there, any other to the
published site.  The files lie in ``_build/pdf``; the site is written once more, takes them over, and offers them
where a page has the directive ``pdf-files``.  Nothing in them depends on the time or on the machine's paths.
"""

import html
import io
import sys
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import yaml
from playwright.sync_api import sync_playwright
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, DictionaryObject, Fit, NameObject, NullObject, StreamObject, TextStringObject
from pypdf.generic import FloatObject as Number

from tools.build import project, results, site
from tools.build.results import BuildFailed
from tools.release.paper import git
from tools.site import address, browser, browser_checks, site_checks
from tools.site.written import PRINTED, pdf_name

# Lists that are searched and filtered, not read.
ON_SCREEN = ("book/ledger", "book/library", "book/general-index", "book/status")
MARGIN, LINE = 51.0, 28.0  # points, of the foot of a page
DIGIT = 0.556  # width of a digit of Helvetica, in sizes of the font
FOOT = 8.0  # points
FONT = {"/Type": "/Font", "/Subtype": "/Type1", "/BaseFont": "/Helvetica", "/Encoding": "/WinAnsiEncoding"}

# Titles of the page and of its sections, each with the name of the place; an equation in one is read as its symbols.
HEADINGS = """headings => headings.map(heading => {
    const copy = heading.cloneNode(true);
    for (const math of copy.querySelectorAll("mjx-container"))
        math.replaceWith(math.querySelector("mjx-assistive-mml")?.textContent ?? "");
    copy.querySelectorAll(".headerlink").forEach(link => link.remove());
    return [heading.localName, copy.textContent.trim().replace(/\\s+/g, " "), heading.closest("section").id];
})"""


@dataclass(frozen=True)
class Print:
    """A page of the site on paper: its name, title, sections (title and anchor each), and the file."""

    page: str
    title: str
    sections: list
    file: bytes


def parts(root):
    """What is printed: the captions of the table of contents with their pages, the first page first of all."""
    toc = yaml.safe_load(project.read(root / "_toc.yml"))
    found = {part["caption"]: [chapter["file"] for chapter in part["chapters"]] for part in toc["parts"]}
    found = {caption: [page for page in pages if not page.startswith(ON_SCREEN)] for caption, pages in found.items()}
    return {"": [toc["root"]]} | {caption: pages for caption, pages in found.items() if pages}


def print_page(tab):
    """The file that a loaded page gives on paper."""
    if found := browser_checks.equations(tab):
        raise BuildFailed("; ".join(found))
    return tab.pdf(prefer_css_page_size=True, print_background=True)


def print_pages(chromium, server, pages):
    """Print pages of the served site one after the other."""
    for page in pages:
        with browser.opened(chromium, server, f"{page}.html", viewport=browser_checks.DESK) as (tab, faults):
            file = print_page(tab)
            headings = tab.eval_on_selector_all("article h1, article section > h2", HEADINGS)
            if faults:
                raise BuildFailed(f"{page}: {'; '.join(faults)}")
        (_, title, _), *rest = headings
        sections = [(text, anchor) for kind, text, anchor in rest if kind == "h2"]
        print(f"printed {page}", flush=True)
        yield Print(page, title, sections, file)


def front(chromium, server, title, state, groups, numbers):
    """The title and the contents, on as many pages as they need; `numbers`: of the page on which each print begins."""
    lines = []
    for caption, prints in groups.items():
        lines += [f"<h2>{html.escape(caption)}</h2>"] if caption else []
        lines += [
            f'<p><a href="{server}/{one.page}.html">{html.escape(one.title)}</a><i></i>{numbers.get(one.page, 0)}</p>'
            for one in prints
        ]
    style = """@page { size: A4; margin: 18mm } body { font: 10pt/1.4 sans-serif } h1 { font-size: 24pt }
        a { color: inherit; text-decoration: none } h2 { font-size: 10pt; margin: 1.2em 0 0.2em; break-after: avoid }
        p { display: flex; margin: 0 } i { flex: 1; border-bottom: 1px dotted gray; margin: 0 0.5em 0.3em }"""
    with chromium.new_page() as tab:
        head = f"<h1>{html.escape(title)}</h1><p>{html.escape(state)}</p>"
        tab.set_content(f'<!doctype html><html lang="en"><style>{style}</style>{head}{"".join(lines)}')
        return tab.pdf(prefer_css_page_size=True)


def merge(title, contents, groups, server, online=None):
    """One file out of prints, as bytes: `contents` (its first pages), then the groups {caption: prints}.

    `server`: the address at which the site was printed, which is in its links; `online`: where it is published.
    """
    writer, first, places = PdfWriter(), {}, {}
    for page in PdfReader(io.BytesIO(contents)).pages:
        writer.add_page(page)
    names = [(None, title)] * len(writer.pages)  # of each page: the print it belongs to, and its title
    for one in (one for prints in groups.values() for one in prints):
        reader, first[one.page] = PdfReader(io.BytesIO(one.file)), len(names)
        for page in reader.pages:
            writer.add_page(page)
            names.append((one.page, one.title))
        for name, place in reader.named_destinations.items():
            number = first[one.page] + reader.get_destination_page_number(place)
            places[one.page, name.removeprefix("/")] = (number, float(place.top))
    writer.add_metadata({"/Title": title})
    font = writer._add_object(DictionaryObject({NameObject(key): NameObject(value) for key, value in FONT.items()}))
    for number, (page, text) in enumerate(names):
        _foot(writer, font, number, text)
        _lead(writer, writer.pages[number], page, first, places, server, online)
    for caption, prints in groups.items():
        above = writer.add_outline_item(title=caption, page_number=first[prints[0].page]) if caption else None
        for one in prints:
            chapter = writer.add_outline_item(title=one.title, page_number=first[one.page], parent=above, is_open=False)
            for text, anchor in one.sections:
                number, top = places.get((one.page, anchor), (first[one.page], 0))
                writer.add_outline_item(title=text, page_number=number, parent=chapter, fit=Fit.xyz(None, top))
    writer.compress_identical_objects()
    made = io.BytesIO()
    writer.write(made)
    return made.getvalue()


def _foot(writer, font, number, text):
    """Write a title and the page's number, from 1, under the page, in points: Chromium leaves its own scale there."""
    page = writer.pages[number]
    right = float(page.mediabox.width) - MARGIN - DIGIT * FOOT * len(str(number + 1))
    words = text.encode("cp1252", "replace").replace(b"\\", b"\\\\").replace(b"(", b"\\(").replace(b")", b"\\)")
    drawn = b"\nQ 0.4 g BT /Foot %g Tf %g %g Td (%s) Tj ET " % (FOOT, MARGIN, LINE, words)
    drawn += b"BT /Foot %g Tf %g %g Td (%d) Tj ET" % (FOOT, right, LINE, number + 1)
    streams = [StreamObject(), StreamObject()]
    for stream, data in zip(streams, (b"q\n", drawn), strict=True):
        stream.set_data(data)
    before, after = map(writer._add_object, streams)
    page[NameObject("/Contents")] = ArrayObject([before, page.raw_get("/Contents"), after])
    fonts = page["/Resources"].get_object().setdefault(NameObject("/Font"), DictionaryObject()).get_object()
    fonts[NameObject("/Foot")] = font


def _lead(writer, sheet, page, first, places, server, online):
    """Make the links of a sheet lead into the file, or else to the published site; one that leads nowhere goes."""
    kept = ArrayObject()
    for link in sheet.get("/Annots", []):
        note = link.get_object()
        uri = note.get("/A", {}).get("/URI", "")
        target, anchor = page, str(note.get("/Dest", "")).removeprefix("/")
        if uri.startswith(server):
            parts = urlsplit(uri.removeprefix(server).lstrip("/"))
            target, anchor = parts.path.removesuffix(".html"), unquote(parts.fragment)
        if uri and not uri.startswith(server):
            pass
        elif target in first:
            number, top = places.get((target, anchor), (first[target], float(sheet.mediabox.height)))
            ends = [
                writer.pages[number].indirect_reference,
                NameObject("/XYZ"),
                NullObject(),
                Number(top),
                NullObject(),
            ]
            note.pop("/A", None)
            note[NameObject("/Dest")] = ArrayObject(ends)
        elif online:
            note["/A"][NameObject("/URI")] = TextStringObject(online + uri.removeprefix(server).lstrip("/"))
        else:
            continue
        kept.append(link)
    if "/Annots" in sheet:
        sheet[NameObject("/Annots")] = kept


def assemble(chromium, server, title, state, groups, online):
    """A file with its contents; these are made twice, since how many pages they take shifts all numbers."""
    contents, numbers = front(chromium, server, title, state, groups, {}), {}
    number = len(PdfReader(io.BytesIO(contents)).pages) + 1
    for one in (one for prints in groups.values() for one in prints):
        numbers[one.page] = number
        number += len(PdfReader(io.BytesIO(one.file)).pages)
    contents = front(chromium, server, title, state, groups, numbers)
    return merge(title, contents, groups, server, online), number - 1


def print_all(root, chromium, server, online):
    """Print what is printed of the site, and put together its files: triples of name, bytes and number of pages."""
    wanted, commit = parts(root), git(root, "rev-parse", "--short", "HEAD")
    state = f"Printed from the site of commit {commit}. What only a screen can show, such as folded code, is there."
    done = {
        one.page: one for one in print_pages(chromium, server, [page for group in wanted.values() for page in group])
    }
    groups = {caption: [done[page] for page in group] for caption, group in wanted.items()}
    yield pdf_name(), *assemble(chromium, server, "The Physics of Learning", state, groups, online)
    for caption, prints in groups.items():
        if pdf_name(caption):
            title = f"The Physics of Learning. {caption}"
            yield pdf_name(caption), *assemble(chromium, server, title, state, {"": prints}, online)


def offer(root):
    """Print the built site into its files, and write it once more, so that it offers them."""
    remote, target = project.remote(root), root / "_build" / PRINTED
    folder = site_checks.site_folder(root)
    if browser.find() is None:
        raise BuildFailed(f"there is no Chromium; install it, or set {browser.VARIABLE} to one")
    if not (folder / "index.html").is_file():
        raise BuildFailed(f"{folder} holds no built site; run `make book` first")
    project.remove(target)
    target.mkdir(parents=True)
    with (
        sync_playwright() as playwright,
        browser.start(playwright) as chromium,
        browser.serve(folder, address.prefix(remote)) as server,
    ):
        for name, file, count in print_all(root, chromium, server, address.site(remote)):
            (target / name).write_bytes(file)
            print(f"{target / name}: {count} pages, {len(file) / 1e6:.1f} MB", flush=True)
    if not site.write(root, project.cores()):
        raise BuildFailed("the files are there, but Sphinx reported the problems above")


def main():
    root = project.ROOT
    try:
        with results.alone(root / "_build"):
            offer(root)
    except BuildFailed as problem:
        sys.exit(f"The book was not printed: {problem}")


if __name__ == "__main__":
    main()
