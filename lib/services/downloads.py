"""The large image sets, read from files that you have or, if you say so, fetch: MNIST, EMNIST letters, CIFAR-10 and CIFAR-5m.

Every loader looks for its files in the folder ``root``, else in the folder that the environment variable
PHYSICS_OF_LEARNING_DATA names, else in a cache folder of the operating system.  It goes to the network only for a file that is
missing, and only with ``download=True``.  A file is read after its MD5 sum is found right, never before, and a file that cannot
be read in full raises :class:`DataCorrupt`.  The images come as :class:`lib.services.data.Images`, like those that ``lib.services.data`` bundles.

>>> from lib.services import data
>>> try:
...     pictures = mnist("train", root="a folder without it")
... except DataUnavailable as missing:
...     pictures = data.load("digits")
>>> pictures.name
'digits'
"""

import gzip
import hashlib
import io
import os
import re
import tarfile
import zipfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
import pooch

from lib.common import checks
from lib.services import data
from lib.services._formats import _check_labels, _cifar_batch, _first_rows, _idx

ENVIRONMENT = "PHYSICS_OF_LEARNING_DATA"


class DataUnavailable(FileNotFoundError):
    """A file is not in the folder and was not, or could not be, fetched.  The message says what to do and what to use instead."""


class DataCorrupt(OSError):
    """A file is there, but it is not the file that was asked for, or it cannot be read in full."""


@dataclass(frozen=True)
class Archive:
    """One file of a data set: its name in the folder, the MD5 sum of its bytes, and, if it is known, where to fetch it."""

    file: str
    md5: str
    url: str = ""

    def __post_init__(self):
        if not isinstance(self.file, str) or self.file in ("", ".", "..") or re.search(r"[/\\\0]", self.file):
            checks.fail("file", "be the name of a file, without a folder", self.file)
        if not isinstance(self.md5, str) or not re.fullmatch("[0-9a-f]{32}", self.md5):
            checks.fail("md5", "be 32 hexadecimal digits in lower case", self.md5)
        if not isinstance(self.url, str) or not re.match("https?://|$", self.url):
            checks.fail("url", "be empty or start with https:// or http://", self.url)


def _mnist_archive(file, md5):
    return Archive(file, md5, f"https://ossci-datasets.s3.amazonaws.com/mnist/{file}")


MNIST = {  # images, labels
    "train": (
        _mnist_archive("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        _mnist_archive("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
    ),
    "test": (
        _mnist_archive("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        _mnist_archive("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ),
}
EMNIST = Archive("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e", "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip")
CIFAR10 = Archive(
    "cifar-10-python.tar.gz",
    "c58f30108f718f92721af3b95e74349a",
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
)


# --- files: find, fetch, verify ---------------------------------------------------------------------------------------------


def _folder(root):
    if root is None:
        named = os.environ.get(ENVIRONMENT)
        return checks.folder(ENVIRONMENT, named) if named else Path(pooch.os_cache("physics-of-learning"))
    return checks.folder("root", root)


def _unavailable(archive, folder, bundled, reason):
    fetch = (
        f"fetch it from {archive.url} into that folder" if archive.url else "put it there: no address is known for it"
    )
    way = f"call again with download=True, or {fetch}" if archive.url else fetch
    return DataUnavailable(
        f"{archive.file} (MD5 {archive.md5}) {reason} {folder}. To get it, {way}; another folder is named by root or by the "
        f'environment variable {ENVIRONMENT}. Without a download there is lib.services.data.load("{bundled}").'
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


def _verify(archive, handle):
    found = hashlib.file_digest(handle, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if found != archive.md5:
        raise DataCorrupt(
            f"{handle.name} has MD5 {found}, and {archive.file} must have {archive.md5}: "
            "it is damaged, incomplete or another file. Delete it and fetch it again."
        )
    handle.seek(0)


@contextmanager
def _opened(archives, root, download, bundled):
    """Open files whose sums are right.  What is verified is what is read: a file replaced in between is another file."""
    folder, download = _folder(root), checks.boolean("download", download)
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
def _parsing(archive):
    """Whatever a damaged file makes a parser stumble over, the reader learns which file it was."""
    try:
        yield
    except Exception as error:
        raise DataCorrupt(f"{archive.file} cannot be read. {type(error).__name__}: {error}") from error


# --- loaders ------------------------------------------------------------------------------------------------------------------


def _images(images, labels, classes, name, size):
    """The central windows as :class:`lib.services.data.Images`; cut out before a byte becomes eight."""
    windows = images if size is None else data._centre(images, size)
    return data.Images(windows.astype(np.float64), labels.astype(np.int64), classes=classes, name=name)


def _split_and_size(split, size):
    """Both checked before any file is read; whether the window fits is known only after."""
    if not isinstance(split, str) or split not in MNIST:
        checks.fail("split", "be 'train' or 'test'", split)
    return split, None if size is None else data._side("size", size)


def _archive(name, value):
    if not isinstance(value, Archive):
        checks.fail(name, "be a lib.services.downloads.Archive", value)
    return value


def mnist(split, *, size=None, root=None, download=False, archives=None):
    """MNIST: 60 000 hand-written digits to train on, 10 000 to test, 28 x 28, values 0..255, black 0.

    Any pair of files in the same format is read if you give its `archives`: Fashion-MNIST, say.

    Parameters
    ----------
    split : str                            "train" or "test"
    size : int or (int, int), optional     side or (height, width) of the central window that is kept; 24 cuts off an empty rim
    root : path, optional                  folder of the files; default: see :mod:`lib.services.downloads`
    download : bool                        whether a missing file is fetched; default: no network
    archives : (Archive, Archive), optional    images and labels; default: MNIST[split]

    Returns
    -------
    lib.services.data.Images                        images (N, height, width), labels 0..9

    Raises
    ------
    ValueError                             if an argument is outside its range
    DataUnavailable                        if a file is missing and was not to be, or could not be, fetched
    DataCorrupt                            if a file has another sum, or is not what it should be

    Examples
    --------
    >>> try:
    ...     mnist("test", root="a folder without it")
    ... except DataUnavailable as missing:
    ...     print(str(missing)[:85])
    t10k-images-idx3-ubyte.gz (MD5 9fb629c4189551a2d022fa330f9573f3) is not in a folder w
    """
    split, size = _split_and_size(split, size)
    archives = MNIST[split] if archives is None else archives
    if not isinstance(archives, (tuple, list)) or len(archives) != 2:
        checks.fail("archives", "be two lib.services.downloads.Archive, images and labels", archives)
    archives = [_archive("archives", archive) for archive in archives]
    with _opened(archives, root, download, "mnist-5k") as (image_file, label_file):
        with _parsing(archives[0]):
            images = _idx(image_file.read(), axes=3)  # (N, 28, 28)
        with _parsing(archives[1]):
            labels = _idx(label_file.read(), axes=1)  # (N,)
            _check_labels(images, labels, 10)
    return _images(images, labels, 10, f"mnist {split}", size)


def emnist_letters(split, *, size=None, root=None, download=False, archive=EMNIST):
    """EMNIST letters: 124 800 hand-written letters to train on, 20 800 to test, 28 x 28, values 0..255.

    Upper and lower case are one class.  The file holds every image with rows and columns exchanged, and numbers its classes
    from 1.  Here the letters stand upright, and a, b, ..., z are 0, 1, ..., 25.

    Parameters
    ----------
    split : str                           "train" or "test"
    size : int or (int, int), optional    as in :func:`mnist`
    root, download                        as in :func:`mnist`
    archive : Archive                     the zip file; if yours is emnist.zip: ``dataclasses.replace(EMNIST, file="emnist.zip")``

    Returns
    -------
    lib.services.data.Images                       images (N, height, width), labels 0..25

    Raises
    ------
    ValueError, DataUnavailable, DataCorrupt    as :func:`mnist`

    Examples
    --------
    >>> try:
    ...     emnist_letters("train", root="a folder without it")
    ... except DataUnavailable as missing:
    ...     print(str(missing)[:71])
    gzip.zip (MD5 58c8d27c78d21e728a6bc7b3cc06412e) is not in a folder with
    """
    split, size = _split_and_size(split, size)
    archive = _archive("archive", archive)
    with (
        _opened([archive], root, download, "mnist-5k") as [handle],
        _parsing(archive),
        zipfile.ZipFile(handle) as bundle,
    ):
        members = {PurePosixPath(path).name: path for path in bundle.namelist()}
        images = _idx(
            bundle.read(members[f"emnist-letters-{split}-images-idx3-ubyte.gz"]), axes=3
        )  # (N, columns, rows)
        labels = _idx(bundle.read(members[f"emnist-letters-{split}-labels-idx1-ubyte.gz"]), axes=1)  # (N,)
        labels = labels.astype(np.int64) - 1
        _check_labels(images, labels, 26)
    return _images(images.transpose(0, 2, 1), labels, 26, f"emnist letters {split}", size)


def cifar10(split, *, grey=True, size=None, root=None, download=False, archive=CIFAR10):
    """CIFAR-10: 50 000 photographs of ten kinds of things to train on, 10 000 to test, 32 x 32, values 0..255.

    The file is a set of pickles.  A pickle can ask for any program to be run; here only arrays of bytes are built from it.

    Parameters
    ----------
    split : str                           "train" (five batches, in order) or "test"
    grey : bool                           True: brightness, :func:`lib.services.data.grey`; False: red, green and blue
    size : int or (int, int), optional    as in :func:`mnist`
    root, download                        as in :func:`mnist`
    archive : Archive                     the tar file

    Returns
    -------
    lib.services.data.Images                       images (N, height, width), in colour (N, height, width, 3); labels 0..9

    Raises
    ------
    ValueError, DataUnavailable, DataCorrupt    as :func:`mnist`

    Examples
    --------
    >>> try:
    ...     cifar10("train", root="a folder without it")
    ... except DataUnavailable as missing:
    ...     print(str(missing)[:67])
    cifar-10-python.tar.gz (MD5 c58f30108f718f92721af3b95e74349a) is no
    """
    split, size = _split_and_size(split, size)
    grey, archive = checks.boolean("grey", grey), _archive("archive", archive)
    members = [f"data_batch_{k}" for k in range(1, 6)] if split == "train" else ["test_batch"]
    with _opened([archive], root, download, "photo-patches") as [handle], _parsing(archive):
        with tarfile.open(
            fileobj=io.BytesIO(gzip.decompress(handle.read()))
        ) as bundle:  # in full: so its own sum is checked too
            batches = [_cifar_batch(bundle.extractfile(f"cifar-10-batches-py/{member}").read()) for member in members]
        for images, labels in batches:
            _check_labels(images, labels, 10)
    images = np.concatenate([data.grey(images) if grey else images for images, _ in batches])  # (N, 32, 32[, 3])
    return _images(images, np.concatenate([labels for _, labels in batches]), 10, f"cifar-10 {split}", size)


def cifar5m(archive, count, *, grey=True, size=None, root=None, download=False):
    """CIFAR-5m: six files of 1 000 448 images that look like CIFAR-10's, 32 x 32, values 0..255, sampled from a diffusion model.

    Its README (github.com/preetum/cifar5m) gives the addresses of ``part0.npz`` to ``part5.npz``, but no sums: so it is you
    who says which file you have.  Fetch a part, take its MD5 sum once, and keep it with your results.

    Parameters
    ----------
    archive : Archive                     ``Archive("part0.npz", "<its MD5>")``: arrays X (N, 32, 32, 3) and Y (N,) of integers
    count : int                           how many images, from the first; >= 1.  A whole part takes 8 GB in grey, 25 GB in colour
    grey : bool                           as in :func:`cifar10`
    size : int or (int, int), optional    as in :func:`mnist`
    root, download                        as in :func:`mnist`; a download needs ``archive.url``

    Returns
    -------
    lib.services.data.Images                       images (count, height, width), in colour (count, height, width, 3); labels 0..9

    Raises
    ------
    ValueError, DataUnavailable, DataCorrupt    as :func:`mnist`

    Examples
    --------
    >>> try:
    ...     cifar5m(Archive("part0.npz", md5=32 * "0"), 1000, root="a folder without it")
    ... except DataUnavailable as missing:
    ...     print(str(missing)[:62])
    part0.npz (MD5 00000000000000000000000000000000) is not in a f
    """
    archive, count = _archive("archive", archive), checks.integer("count", count)
    size = None if size is None else data._side("size", size)
    grey = checks.boolean("grey", grey)
    with (
        _opened([archive], root, download, "photo-patches") as [handle],
        _parsing(archive),
        zipfile.ZipFile(handle) as bundle,
    ):
        images, labels = (
            _first_rows(bundle, "X.npy", count),
            _first_rows(bundle, "Y.npy", count),
        )  # (N, 32, 32, 3), (N,)
        if images.shape[1:] != (32, 32, 3) or images.dtype != np.uint8:
            raise ValueError(
                f"X must hold bytes of shape (N, 32, 32, 3), and it has {images.dtype} of shape {images.shape}"
            )
        _check_labels(images, labels, 10)
    if len(images) < count:
        checks.fail("count", f"be at most {len(images)}, the number of images in {archive.file}", count)
    return _images(data.grey(images) if grey else images, labels, 10, f"cifar-5m {archive.file}", size)
