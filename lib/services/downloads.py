"""The large image sets, from files that you have or, if you say so, fetch: MNIST, EMNIST letters, CIFAR-10, CIFAR-5m.

A file is read only if its MD5 sum is right.
"""

import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Sequence
from pathlib import PurePosixPath

import numpy as np

from lib.common import checks
from lib.services import _formats, data
from lib.services._files import ENVIRONMENT, Archive, DataCorrupt, DataUnavailable, opened, parsing

__all__ = ["ENVIRONMENT", "Archive", "DataCorrupt", "DataUnavailable"]
__all__ += ["cifar10", "cifar10_jpeg", "cifar5m", "emnist_letters", "mnist"]


_Size = int | tuple[int, int] | None


def _mnist_archive(name, md5, unpacked):
    file = f"{name}-ubyte.gz"
    return Archive(file, md5, f"https://ossci-datasets.s3.amazonaws.com/mnist/{file}", unpacked)


MNIST = {  # images, labels
    "train": (
        _mnist_archive("train-images-idx3", "f68b3c2dcbeaaa9fbdd348bbdeb94873", "6bbc9ace898e44ae57da46a324031adb"),
        _mnist_archive("train-labels-idx1", "d53e105ee54ea40749a09fcbcd1e9432", "a25bea736e30d166cdddb491f175f624"),
    ),
    "test": (
        _mnist_archive("t10k-images-idx3", "9fb629c4189551a2d022fa330f9573f3", "2646ac647ad5339dbf082846283269ea"),
        _mnist_archive("t10k-labels-idx1", "ec29112dd5afa0611ce80d1b7f02629c", "27ae3e4e09519cfbb04c329615203637"),
    ),
}
EMNIST = Archive("gzip.zip", "58c8d27c78d21e728a6bc7b3cc06412e", "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip")
_CIFAR10 = "cifar-10-python.tar.gz"
CIFAR10 = Archive(_CIFAR10, "c58f30108f718f92721af3b95e74349a", f"https://www.cs.toronto.edu/~kriz/{_CIFAR10}")
CIFAR10_JPEG = Archive("cifar10-train-jpeg.npz", "6bcc7bec8077497b4803ecaf19fdda56")


def _images(images, labels, classes, name, size):
    """The central windows, labelled."""
    windows = images.astype(np.float64) if size is None else data.crop(images, size)
    return data.Images(windows, labels.astype(np.int64), classes=classes, name=name)


def _split_and_size(split, size):
    """Both checked before any file is read; whether the window fits is known only after."""
    return checks.one_of("split", split, MNIST), None if size is None else data._checked_side(size)


def _archive(name, value):
    return checks.instance(name, value, Archive, "as lib.services.downloads defines it")


def mnist(
    split: str,
    *,
    size: _Size = None,
    root: str | os.PathLike | None = None,
    download: bool = False,
    archives: Sequence[Archive] | None = None,
) -> data.Images:
    """MNIST: 60 000 hand-written digits to train on, 10 000 to test, 28 x 28, values 0..255, black 0.

    Parameters
    ----------
    split : str
        "train" or "test".
    size : int or (int, int), optional
        Side, or height and width, of the central window; by default the whole image.
    root : path, optional
        Folder of the files; by default that of PHYSICS_OF_LEARNING_DATA, else the system's cache.
    download : bool
        Whether a missing file is fetched.
    archives : (Archive, Archive), optional
        Images and labels of another set in the same format, as Fashion-MNIST.

    Returns
    -------
    data.Images
        (N, height, width), labels 0..9.

    Raises
    ------
    DataUnavailable, DataCorrupt
        If a file is missing; if its sum is wrong, or it cannot be read.

    Examples
    --------
    >>> try:
    ...     pictures = mnist("test", root="a folder without it")
    ... except DataUnavailable:
    ...     pictures = data.load("digits")
    >>> pictures.name
    'digits'
    """
    split, size = _split_and_size(split, size)
    archives = MNIST[split] if archives is None else archives
    if not isinstance(archives, (tuple, list)) or len(archives) != 2:
        checks.fail("archives", "be two lib.services.downloads.Archive, images and labels", archives)
    archives = [_archive("archives", archive) for archive in archives]
    with opened(archives, root, download, "mnist-5k") as (image_file, label_file):
        with parsing(archives[0]):
            images = _formats.idx(image_file.read(), axes=3)  # (N, 28, 28)
        with parsing(archives[1]):
            labels = _formats.idx(label_file.read(), axes=1)  # (N,)
            _formats.check_labels(images, labels, 10)
    return _images(images, labels, 10, f"mnist {split}", size)


def emnist_letters(
    split: str,
    *,
    size: _Size = None,
    root: str | os.PathLike | None = None,
    download: bool = False,
    archive: Archive = EMNIST,
) -> data.Images:
    """EMNIST letters: 124 800 hand-written letters to train on, 20 800 to test, 28 x 28, values 0..255.

    Both cases of a letter are one class; unlike in the file letters stand upright, and a, ..., z are 0, ..., 25.

    Parameters
    ----------
    split : str
        "train" or "test".
    size : int or (int, int), optional
        Side, or height and width, of the central window; by default the whole image.
    root : path, optional
        Folder of the files; by default that of PHYSICS_OF_LEARNING_DATA, else the system's cache.
    download : bool
        Whether a missing file is fetched.
    archive : Archive
        The file.

    Returns
    -------
    data.Images
        (N, height, width).

    Raises
    ------
    DataUnavailable, DataCorrupt
        If a file is missing; if its sum is wrong, or it cannot be read.

    Examples
    --------
    >>> EMNIST.file  # what emnist_letters("train") looks for
    'gzip.zip'
    """
    split, size = _split_and_size(split, size)
    archive = _archive("archive", archive)
    with opened([archive], root, download, "mnist-5k") as [file], parsing(archive), zipfile.ZipFile(file) as bundle:
        members = {PurePosixPath(path).name: path for path in bundle.namelist()}
        wanted = (f"emnist-letters-{split}-{kind}-ubyte.gz" for kind in ("images-idx3", "labels-idx1"))
        image_file, label_file = (bundle.read(members[name]) for name in wanted)
        images, labels = _formats.idx(image_file, axes=3), _formats.idx(label_file, axes=1)  # (N, columns, rows), (N,)
        labels = labels.astype(np.int64) - 1
        _formats.check_labels(images, labels, 26)
    return _images(images.transpose(0, 2, 1), labels, 26, f"emnist letters {split}", size)


def cifar10(
    split: str,
    *,
    grey: bool = True,
    size: _Size = None,
    root: str | os.PathLike | None = None,
    download: bool = False,
    archive: Archive = CIFAR10,
) -> data.Images:
    """CIFAR-10: 50 000 photographs of ten kinds of things to train on, 10 000 to test, 32 x 32, values 0..255.

    Only arrays of bytes are built from its pickles, which could run any program.

    Parameters
    ----------
    split : str
        "train" or "test".
    grey : bool
        Or red, green, blue.
    size : int or (int, int), optional
        Side, or height and width, of the central window; by default the whole image.
    root : path, optional
        Folder of the files; by default that of PHYSICS_OF_LEARNING_DATA, else the system's cache.
    download : bool
        Whether a missing file is fetched.
    archive : Archive
        The file.

    Returns
    -------
    data.Images
        (N, height, width[, 3]).

    Raises
    ------
    DataUnavailable, DataCorrupt
        If a file is missing; if its sum is wrong, or it cannot be read.

    Examples
    --------
    >>> CIFAR10.file  # what cifar10("train") looks for
    'cifar-10-python.tar.gz'
    """
    split, size = _split_and_size(split, size)
    grey, archive = checks.boolean("grey", grey), _archive("archive", archive)
    names = [f"data_batch_{k}" for k in range(1, 6)] if split == "train" else ["test_batch"]
    with opened([archive], root, download, "photo-patches") as [handle], parsing(archive):
        unpacked = io.BytesIO(gzip.decompress(handle.read()))  # in full: so its own sum is checked too
        with tarfile.open(fileobj=unpacked) as bundle:
            members = (bundle.extractfile(f"cifar-10-batches-py/{name}") for name in names)
            batches = [_formats.cifar_batch(member.read()) for member in members]
        for images, labels in batches:
            _formats.check_labels(images, labels, 10)
    images = np.concatenate([data._grey(images) if grey else images for images, _ in batches])  # (N, 32, 32[, 3])
    return _images(images, np.concatenate([labels for _, labels in batches]), 10, f"cifar-10 {split}", size)


def cifar10_jpeg(
    *, grey: bool = True, root: str | os.PathLike | None = None, archive: Archive = CIFAR10_JPEG
) -> data.Images:
    """CIFAR-10's 50 000 training images from a copy in JPEG, 32 x 32, values 0..255: lossy, so say so.

    Weak modes of the covariance carry the noise of the compression.

    Parameters
    ----------
    grey : bool
        Or red, green, blue.
    root : path, optional
        Folder of the files; by default that of PHYSICS_OF_LEARNING_DATA, else the system's cache.
    archive : Archive
        An npz of ``jpeg``, ``offsets``, ``labels``; no address is known.

    Returns
    -------
    data.Images
        (N, 32, 32[, 3]).

    Raises
    ------
    DataUnavailable, DataCorrupt
        If a file is missing; if its sum is wrong, or it cannot be read.

    Examples
    --------
    >>> CIFAR10_JPEG.file
    'cifar10-train-jpeg.npz'
    """
    grey, archive = checks.boolean("grey", grey), _archive("archive", archive)
    with opened([archive], root, False, "photo-patches") as [file], parsing(archive):
        images, labels = _formats.jpegs(file.read())  # (N, 32, 32, 3), (N,)
        if images.shape[1:] != (32, 32, 3):
            raise ValueError(f"it must hold colour images of 32 x 32, and they have shape {images.shape[1:]}")
        _formats.check_labels(images, labels, 10)
    return _images(data._grey(images) if grey else images, labels, 10, "cifar-10 train, JPEG copy", None)


def cifar5m(
    archive: Archive,
    count: int,
    *,
    grey: bool = True,
    size: _Size = None,
    root: str | os.PathLike | None = None,
    download: bool = False,
) -> data.Images:
    """CIFAR-5m: six files of 1 000 448 images like CIFAR-10's, 32 x 32, values 0..255, drawn from a diffusion model.

    Its README (github.com/preetum/cifar5m) has no sums: take that of a part once and keep it.

    Parameters
    ----------
    archive : Archive
        A file that holds X (N, 32, 32, 3) and Y (N,).
    count : int
        How many images, from the first; a part takes 8 GB in grey.
    grey : bool
        Or red, green, blue.
    size : int or (int, int), optional
        Side, or height and width, of the central window; by default the whole image.
    root : path, optional
        Folder of the files; by default that of PHYSICS_OF_LEARNING_DATA, else the system's cache.
    download : bool
        Whether a missing file is fetched.

    Returns
    -------
    data.Images
        (count, height, width[, 3]).

    Raises
    ------
    DataUnavailable, DataCorrupt
        If a file is missing; if its sum is wrong, or it cannot be read.

    Examples
    --------
    >>> part = Archive("part0.npz", md5=32 * "0")  # its sum; then cifar5m(part, 1000)
    """
    archive, count = _archive("archive", archive), checks.integer("count", count)
    size = None if size is None else data._checked_side(size)
    grey = checks.boolean("grey", grey)
    with opened([archive], root, download, "photo-patches") as [file], parsing(archive), zipfile.ZipFile(file) as parts:
        images = _formats.first_rows(parts, "X.npy", count)  # (N, 32, 32, 3)
        labels = _formats.first_rows(parts, "Y.npy", count)  # (N,)
        if images.shape[1:] != (32, 32, 3) or images.dtype != np.uint8:
            raise ValueError(f"X must hold bytes (N, 32, 32, 3), and it has {images.dtype} of shape {images.shape}")
        _formats.check_labels(images, labels, 10)
    if len(images) < count:
        checks.fail("count", f"be at most {len(images)}, the number of images in {archive.file}", count)
    return _images(data._grey(images) if grey else images, labels, 10, f"cifar-5m {archive.file}", size)
