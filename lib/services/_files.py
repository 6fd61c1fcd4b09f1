"""Files of data: looked for in a folder, fetched if that is wanted, verified by their sum, and only then read."""

import gzip
import hashlib
import os
import re
import zlib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pooch

from lib.common import checks

ENVIRONMENT = "PHYSICS_OF_LEARNING_DATA"


class DataUnavailable(FileNotFoundError):
    """A file is not in the folder and was not, or could not be, fetched; the message says what to do instead."""


class DataCorrupt(OSError):
    """A file is there, but it is not the file that was asked for, or it cannot be read in full."""


@dataclass(frozen=True)
class Archive:
    """One file of a data set.

    Parameters
    ----------
    file : str
        Its name in the folder.
    md5 : str
        Sum of its bytes, 32 hexadecimal digits.
    url : str
        Where to fetch it, if that is known.
    unpacked : str
        MD5 of what a gzip file holds, if that is known: then any compression of it will do.
    """

    file: str
    md5: str
    url: str = ""
    unpacked: str = ""

    def __post_init__(self):
        if not isinstance(self.file, str) or self.file in ("", ".", "..") or re.search(r"[/\\\0]", self.file):
            checks.fail("file", "be the name of a file, without a folder", self.file)
        if not isinstance(self.md5, str) or not re.fullmatch("[0-9a-f]{32}", self.md5):
            checks.fail("md5", "be 32 hexadecimal digits in lower case", self.md5)
        if not isinstance(self.unpacked, str) or not re.fullmatch("([0-9a-f]{32})?", self.unpacked):
            checks.fail("unpacked", "be 32 hexadecimal digits in lower case, or empty", self.unpacked)
        if not isinstance(self.url, str) or not re.match("https?://|$", self.url):
            checks.fail("url", "be empty or start with https:// or http://", self.url)


def data_folder():
    """The folder that PHYSICS_OF_LEARNING_DATA names, else the one in the user's cache."""
    named = os.environ.get(ENVIRONMENT)
    return checks.folder(ENVIRONMENT, named) if named else Path(pooch.os_cache("physics-of-learning"))


def data_present():
    """A sum over the names and sizes of the files in the data folder; what is read of them is verified then."""
    folder = data_folder()
    files = sorted((path.name, path.stat().st_size) for path in folder.glob("*") if path.is_file())
    return hashlib.sha256(repr(files).encode()).hexdigest()[:16]


def _unavailable(archive, folder, bundled, reason):
    way = "put it there: no address is known for it"
    if archive.url:
        way = f"call again with download=True, or fetch it from {archive.url} into that folder"
    return DataUnavailable(
        f"{archive.file} (MD5 {archive.md5}) {reason} {folder}. To get it, {way}; another folder is named by root or "
        f'by the environment variable {ENVIRONMENT}. Without a download there is lib.services.data.load("{bundled}").'
    )


def _fetch(archive, folder, bundled):
    """Download to a temporary name; pooch gives the file its own name only after its sum is found right."""
    answers = []  # kept, because pooch does not close an answer that it refuses
    downloader = pooch.HTTPDownloader(hooks={"response": lambda answer, **_: answers.append(answer)})
    try:
        pooch.retrieve(archive.url, f"md5:{archive.md5}", archive.file, folder, downloader=downloader)
    except OSError as error:  # first, because some errors of the network are a ValueError as well
        raise _unavailable(archive, folder, bundled, f"could not be downloaded ({error}) to") from error
    except ValueError as error:  # pooch names both sums, and has thrown the bytes away
        raise DataCorrupt(f"{archive.file} was not kept: what {archive.url} sent is not that file. {error}") from error
    finally:
        for answer in answers:
            answer.close()


def _md5(handle):
    return hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _unpacked_md5(handle):
    """MD5 of what a gzip file holds; None if it is not one, or damaged."""
    try:
        with gzip.open(handle) as inside:
            return _md5(inside)
    except (OSError, EOFError, zlib.error):
        return None


def _verify(archive, handle):
    found = _md5(handle)
    handle.seek(0)
    if found != archive.md5 and not (archive.unpacked and _unpacked_md5(handle) == archive.unpacked):
        raise DataCorrupt(
            f"{handle.name} has MD5 {found}, and {archive.file} must have {archive.md5}: "
            "it is damaged, incomplete or another file. Delete it and fetch it again."
        )
    handle.seek(0)


@contextmanager
def opened(archives, root, download, bundled):
    """Open files whose sums are right.  What is verified is what is read: the file is not opened twice."""
    download = checks.boolean("download", download)
    folder = data_folder() if root is None else checks.folder("root", root)
    for archive in archives:
        if not (folder / archive.file).is_file():
            if not (download and archive.url):
                raise _unavailable(archive, folder, bundled, "is not in")
            _fetch(archive, folder, bundled)
    with ExitStack() as stack:
        handles = [stack.enter_context(open(folder / archive.file, "rb")) for archive in archives]
        for archive, handle in zip(archives, handles):
            _verify(archive, handle)
        yield handles


@contextmanager
def parsing(archive):
    """Whatever a damaged file makes a parser stumble over, the reader learns which file it was."""
    try:
        yield
    except Exception as error:
        raise DataCorrupt(f"{archive.file} cannot be read. {type(error).__name__}: {error}") from error
