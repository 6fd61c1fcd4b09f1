"""Real images without a download: one interface for three sets inside packages, and the steps to a design matrix.

``digits`` (scikit-learn): 1797 hand-written digits, 8 x 8, values 0..16.  ``mnist-5k`` (beside this module, with its
licence): 500 a class of MNIST, 28 x 28, 0..255.  ``photo-patches`` (scikit-learn): patches of two photographs, grey,
0..255.  All have labels 0..9, and pixels in the range of their file: a learning rate means something only next to it.
``downloads`` gives large sets.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from lib.common import checks
from lib.common.shapes import Array, ArrayLike

MNIST_5K = Path(__file__).with_name("mnist-5k.npz")
GREY = (0.299, 0.587, 0.114)  # weights of red, green and blue, of Rec. 601
DEFAULT_SIZE = {"digits": (6, 6), "mnist-5k": (28, 28), "photo-patches": (8, 8)}
BANDS = 5  # classes that each photograph is cut into, side by side


@dataclass(frozen=True, eq=False)
class Images:
    """Labelled images.

    Parameters
    ----------
    images : ndarray (N, height, width[, 3])
        float64, in the range of the source; the last axis of colour images is red, green, blue.
    labels : ndarray (N,)
        Integers 0 .. classes - 1.
    classes : int
    name : str
    """

    images: Array["N height width ..."]
    labels: Array[" N"]
    classes: int
    name: str


def _checked_side(size: int | tuple[int, int]) -> tuple[int, int]:
    """Read the sides of a window.

    Parameters
    ----------
    size : int or (int, int)
        One side, or height and width, >= 1.

    Returns
    -------
    int, int
        Height and width.

    Examples
    --------
    >>> _checked_side(8)
    (8, 8)
    """
    pair = size if isinstance(size, (tuple, list)) else (size, size)
    fits = len(pair) == 2 and all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) and n >= 1 for n in pair)
    checks.fail_if(not fits, "size", "be an integer >= 1 or a pair of them, (height, width)", size)
    return int(pair[0]), int(pair[1])


def _stack(images):
    images = checks.array("images", images)
    if images.ndim not in (3, 4) or images.ndim == 4 and images.shape[3] != 3 or images.size == 0:
        checks.fail("images", "have shape (N, height, width) or (N, height, width, 3)", f"shape {images.shape}")
    return images


def crop(images: ArrayLike, size: int | tuple[int, int]) -> Array["N rows columns ..."]:
    """Cut the boundary off: the central window of every image, cut out before bytes become floats.

    Parameters
    ----------
    images : array_like (N, height, width[, 3])
    size : int or (int, int)
        Side, or rows and columns, of the window; an odd row is left below, an odd column at the right.

    Returns
    -------
    ndarray (N, rows, columns[, 3])
        A copy.

    Examples
    --------
    >>> crop([[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]], (1, 2)).tolist()
    [[[5.0, 6.0]]]
    """
    images = images if isinstance(images, np.ndarray) and images.ndim in (3, 4) else _stack(images)
    height, width = images.shape[1:3]
    rows, columns = _checked_side(size)
    if rows > height or columns > width:
        checks.fail("size", f"be at most {height} x {width}, the size of the images", size)
    top, left = (height - rows) // 2, (width - columns) // 2
    return _stack(images[:, top : top + rows, left : left + columns])  # (N, rows, columns[, 3])


def _grey(images: ArrayLike) -> float | Array["..."]:
    """Brightness of colour images,  0.299 red + 0.587 green + 0.114 blue  (Rec. 601), so white stays.

    Parameters
    ----------
    images : array_like (..., 3)

    Returns
    -------
    float or ndarray (...)

    Examples
    --------
    >>> _grey([[255, 0, 0], [255, 255, 255]]).round(3).tolist()
    [76.245, 255.0]
    """
    images = checks.array("images", images)
    if images.ndim == 0 or images.shape[-1] != 3:
        checks.fail("images", "have a last axis of length 3: red, green, blue", f"shape {images.shape}")
    return checks.plain(images @ np.array(GREY))  # (...)


def one_hot(labels: ArrayLike, classes: int) -> Array["N C"]:
    """Targets for one linear unit a class:  1 in the column of the label, 0 elsewhere.

    Parameters
    ----------
    labels : array_like (N,)
        Integers 0 .. C - 1.
    classes : int
        C.

    Returns
    -------
    ndarray (N, C)

    Examples
    --------
    >>> one_hot([2, 0], 3).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    classes = checks.integer("classes", classes)
    values = checks.entries("labels", labels, at_least=0, at_most=classes - 1, ndim=1)  # (N,)
    if values.size == 0 or np.any(values != np.floor(values)):
        checks.fail("labels", f"hold one or more integers from 0 to {classes - 1}", labels)
    return np.eye(classes)[values.astype(int)]  # (N, C)


def design(images: ArrayLike) -> Array["N d"]:
    """Design matrix of images:  one a row, line by line, colours inside.

    Parameters
    ----------
    images : array_like (N, height, width[, 3])

    Returns
    -------
    ndarray (N, d)

    Examples
    --------
    >>> design([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]).tolist()
    [[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]
    """
    images = _stack(images)
    return images.reshape(len(images), -1)  # (N, d)


def _photo_patches(size, stride):
    """Patches of both photographs, in reading order, labelled by photograph and vertical band."""
    from sklearn.datasets import load_sample_image  # takes most of a second

    pictures = np.stack([_grey(load_sample_image(f"{name}.jpg")) for name in ("china", "flower")])  # (2, 427, 640)
    width = pictures.shape[2]
    if size[0] > pictures.shape[1] or size[1] > width:
        checks.fail("size", f"be at most {pictures.shape[1]} x {width}, the size of the photographs", size)
    patches = sliding_window_view(pictures, size, axis=(1, 2))[:, ::stride, ::stride]  # (2, rows, columns, *size)
    doubled_centre = 2 * stride * np.arange(patches.shape[2]) + size[1]  # (columns,)  the centre may not be an integer
    band = BANDS * doubled_centre // (2 * width)  # (columns,)
    labels = BANDS * np.arange(2)[:, None, None] + np.broadcast_to(band, patches.shape[:3])  # (2, rows, columns)
    return patches.reshape(-1, *size), labels.ravel()


def load(name: str, *, size: int | tuple[int, int] | None = None, stride: int | None = None) -> Images:
    """Load a set that comes with a package: nothing is downloaded, and every call gives the same arrays.

    A patch has label 5 · photograph + the fifth, from left to right, of its centre; pixels of photographs depend on the
    JPEG decoder: compare to 1e-3.

    Parameters
    ----------
    name : str
        "digits", "mnist-5k" or "photo-patches".
    size : int or (int, int), optional
        Side, or height and width, of the central window or patch: by default 6 for digits (at 8, three pixels never
        change), 28 for mnist-5k, 8 for patches.
    stride : int, optional
        Pixels from patch to patch, by default 8.

    Returns
    -------
    Images
        In grey.

    Examples
    --------
    >>> handwriting = load("digits")
    >>> handwriting.images.shape, handwriting.labels[:4].tolist(), handwriting.classes
    ((1797, 6, 6), [0, 1, 2, 3], 10)
    """
    checks.one_of("name", name, DEFAULT_SIZE)
    size = _checked_side(DEFAULT_SIZE[name] if size is None else size)
    if name == "photo-patches":
        patches, labels = _photo_patches(size, 8 if stride is None else checks.integer("stride", stride))
        return Images(patches, labels, classes=2 * BANDS, name=name)
    checks.fail_if(stride is not None, "stride", f"be left out for {name}, which is not cut into patches", stride)
    if name == "digits":
        from sklearn.datasets import load_digits  # takes most of a second

        bunch = load_digits()
        images, labels = bunch.images, bunch.target  # (1797, 8, 8), (1797,)
    else:
        with np.load(MNIST_5K) as file:
            images, labels = file["images"], file["labels"]  # (5000, 28, 28), (5000,)
    return Images(crop(images, size), labels.astype(np.int64), classes=10, name=name)
