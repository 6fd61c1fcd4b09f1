"""The file formats of the large image sets: each is read in full, or refused with a reason."""

import gzip
import io
import math
import pickle

import numpy as np
from matplotlib.image import imread


def idx(packed, axes):
    """The array in a gzip-compressed IDX file: magic 2048 + number of axes, one length an axis, then the bytes."""
    content = gzip.decompress(packed)
    length = 4 * (1 + axes)
    if len(content) < length:
        raise ValueError("it ends inside its header")
    magic, *shape = np.frombuffer(content[:length], ">u4").tolist()
    if magic != 2048 + axes:
        raise ValueError(f"it starts with the magic number {magic}, and {axes} axes of bytes have {2048 + axes}")
    if math.prod(shape) != len(content) - length:
        raise ValueError(f"its header promises {' x '.join(map(str, shape))} bytes, and {len(content) - length} follow")
    return np.frombuffer(content, np.uint8, offset=length).reshape(shape)  # (N, ...)


class _Pixels:
    """What a pickled array of bytes is read into: ``numpy.ndarray`` could be told to take any memory for its data."""

    def __init__(self, *_):  # the arguments describe the empty array that pickle starts from
        self.array = None

    def __setstate__(self, state):
        _, shape, kind, fortran, content = state
        if not isinstance(kind, _Uint8) or not isinstance(content, bytes):
            raise pickle.UnpicklingError("the array is not one of bytes")
        self.array = np.frombuffer(content, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Uint8:
    """What the type of a pickled array is read into; the only one there is."""

    def __init__(self, code, *_):
        if code not in (b"u1", "u1"):
            raise pickle.UnpicklingError(f"the array has type {code!r}, not bytes")

    def __setstate__(self, _):
        """A byte has no byte order and no fields: nothing is kept of them."""


class _Unpickler(pickle.Unpickler):
    """Reads dictionaries, lists, text, numbers and arrays of bytes; any other name is refused, not looked up."""

    NAMES = {
        ("numpy.core.multiarray", "_reconstruct"): _Pixels,
        ("numpy._core.multiarray", "_reconstruct"): _Pixels,
        ("numpy", "ndarray"): _Pixels,
        ("numpy", "dtype"): _Uint8,
    }

    def find_class(self, module, name):
        if (module, name) not in self.NAMES:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no image needs: do not open it otherwise")
        return self.NAMES[module, name]


def cifar_batch(content):
    """The colour images and the labels of one CIFAR-10 batch, a pickled dictionary."""
    batch = _Unpickler(io.BytesIO(content), encoding="bytes").load()
    planes = batch[b"data"].array.reshape(-1, 3, 32, 32)  # (N, 3, 32, 32)
    return planes.transpose(0, 2, 3, 1), np.array(batch[b"labels"])  # (N, 32, 32, 3), (N,)


def jpegs(packed):
    """The colour images and the labels of an npz file of JPEG files: image i is jpeg[offsets[i] : offsets[i + 1]]."""
    with np.load(io.BytesIO(packed), allow_pickle=False) as parts:
        content, offsets, labels = parts["jpeg"].tobytes(), parts["offsets"].tolist(), parts["labels"]
    ends = zip(offsets, offsets[1:])
    return np.stack([imread(io.BytesIO(content[start:end]), format="jpeg") for start, end in ends]), labels


def first_rows(bundle, member, count):
    """At most `count` rows of one array in an npz file: a whole part of CIFAR-5m would need gigabytes."""
    with bundle.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, kind = read_header(stream)
        if fortran or kind.kind not in "iu" or len(shape) == 0:
            raise ValueError(f"{member} must hold integers in rows")
        if stream.tell() + math.prod(shape) * kind.itemsize != bundle.getinfo(member).file_size:
            raise ValueError(f"{member} does not have the length that its header promises")
        rows = (min(count, shape[0]), *shape[1:])
        content = stream.read(math.prod(rows) * kind.itemsize)
    return np.frombuffer(content, kind).reshape(rows)  # (rows, ...), or a ValueError where the file ends early


def check_labels(images, labels, classes):
    """Refuse labels that are not one class, an integer from 0, for each image."""
    if labels.shape != (len(images),) or labels.size == 0 or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{len(images)} images need as many labels, integers, and it has labels of shape {labels.shape}"
        )
    if labels.min() < 0 or labels.max() >= classes:
        raise ValueError(f"its labels run from {labels.min()} to {labels.max()}, outside its {classes} classes")
