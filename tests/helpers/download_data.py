"""Tiny files in the formats that lib.services.downloads reads, written from the descriptions of the formats."""

import gzip
import hashlib
import io
import pickle
import struct
import tarfile
import zipfile

import numpy as np
import pooch
import pytest

from lib.services import downloads
from lib.services.downloads import Archive

RNG = np.random.default_rng(20240607)
DIGITS = RNG.integers(0, 256, (5, 6, 4), dtype=np.uint8)
PHOTOGRAPHS = RNG.integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
LABELS = np.array([3, 1, 9, 1, 5], dtype=np.uint8)


def idx(array, *, magic=None, shape=None):
    shape = array.shape if shape is None else shape
    return struct.pack(f">{1 + len(shape)}I", magic or 0x800 + array.ndim, *shape) + array.tobytes()


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as bundle:
        for name, content in members.items():
            bundle.writestr(zipfile.ZipInfo(name), content, compression)  # ZipInfo: no time of day in the file
    return stream.getvalue()


def tarred(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as bundle:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            bundle.addfile(info, io.BytesIO(content))
    return gzip.compress(stream.getvalue(), mtime=0)


def emnist_file(images, labels, split="train"):
    """As NIST packs it: in a folder, each part gzipped, every image transposed, labels from 1."""
    parts = {"images-idx3": idx(images.transpose(0, 2, 1).copy()), "labels-idx1": idx(labels)}
    return zipped(
        {f"gzip/emnist-letters-{split}-{part}-ubyte.gz": gzip.compress(raw, mtime=0) for part, raw in parts.items()}
    )


def python2_text(text):
    return b"U" + bytes([len(text)]) + text if len(text) < 256 else b"T" + struct.pack("<i", len(text)) + text


def python2_pickle(photographs, labels, *, kind=b"u1", name=b"numpy.core.multiarray\n_reconstruct\n"):
    """A batch as Python 2 pickled it (protocol 2): text without encoding, NumPy's names of that time, planes R, G,
    B.
    """
    planes = photographs.transpose(0, 3, 1, 2).reshape(len(photographs), 3072)
    shape = b"J" + struct.pack("<i", len(planes)) + b"M" + struct.pack("<H", 3072) + b"\x86"
    dtype = (
        b"cnumpy\ndtype\n"
        + python2_text(kind)
        + b"K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
    )
    array = b"c" + name + b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01" + shape + dtype + b"\x89"
    array += python2_text(planes.tobytes()) + b"tb"
    numbers = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return b"\x80\x02}(" + python2_text(b"labels") + numbers + python2_text(b"data") + array + b"u."


def python3_pickle(photographs, labels, protocol=4):
    planes = photographs.transpose(0, 3, 1, 2).reshape(len(photographs), 3072)
    return pickle.dumps({b"labels": [int(label) for label in labels], b"data": planes}, protocol)


def cifar_file(batches):
    """`batches`: six pickles, five to train on and the test batch."""
    names = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]
    return tarred({f"cifar-10-batches-py/{name}": content for name, content in zip(names, batches)})


def npz(**named):
    stream = io.BytesIO()
    np.savez(stream, **named)
    return stream.getvalue()


def put(folder, content, file="file", url=""):
    """Write `content` into `folder`; the Archive that describes it."""
    (folder / file).write_bytes(content)
    return Archive(file, hashlib.md5(content).hexdigest(), url)


def put_mnist(folder, images, labels, pack=lambda raw: gzip.compress(raw, mtime=0)):
    return put(folder, pack(images), "images.gz"), put(folder, pack(labels), "labels.gz")


BATCHES = [python2_pickle((PHOTOGRAPHS + np.uint8(k)), [k, 9 - k, 0]) for k in range(6)]
GOOD = {  # name of a loader -> (bytes of its only file, arguments)
    "emnist_letters": (emnist_file(DIGITS, LABELS), {"split": "train"}),
    "cifar10": (cifar_file(BATCHES), {"split": "train"}),
    "cifar5m": (npz(X=PHOTOGRAPHS, Y=np.array([7, 0, 9])), {"count": 3}),
}


@pytest.fixture(autouse=True)
def no_network(monkeypatch, request):
    """Unless a test serves files itself, the way to the network ends in a failure that no loader catches."""
    monkeypatch.delenv(downloads.ENVIRONMENT, raising=False)
    if "serve" not in request.fixturenames:

        def refuse(*arguments, **_):
            pytest.fail(f"went to the network: {arguments}")

        monkeypatch.setattr(pooch, "retrieve", refuse)
