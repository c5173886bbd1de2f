"""Files of the web in a folder of the user's, tf.keras.utils.get_file."""

import hashlib
import os
import shutil
import tarfile
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile


def get_file(
    fname=None,
    origin=None,
    untar=False,
    md5_hash=None,
    file_hash=None,
    cache_subdir="datasets",
    hash_algorithm="auto",
    extract=False,
    archive_format="auto",
    cache_dir=None,
):
    """The path of a file in the cache, which is fetched from the URL `origin` where it is
    not there yet or has another hash.

    The cache is `cache_dir`, else $KERAS_HOME, else ~/.keras, and in it `cache_subdir`;
    where that cannot be written, /tmp/.keras. With `extract`, archives ("tar", "zip"; all
    that `archive_format` lists, "auto" both) are unpacked beside the file; with `untar` the
    file is FNAME.tar.gz, and the path is that of the folder FNAME.

    Raises:
      ValueError: no `origin`, or what was fetched has another hash, md5 or sha256 by
        `hash_algorithm` or, "auto", by its length.
      Exception: the URL cannot be fetched.
    """
    if origin is None:
        raise ValueError(
            'Please specify the "origin" argument (URL of the file to download).'
        )
    if md5_hash is not None and file_hash is None:
        file_hash, hash_algorithm = md5_hash, "md5"
    folder = _folder(cache_dir, cache_subdir)
    name = os.fspath(fname) if fname else _name_of(origin)
    if untar:
        name = name.removesuffix(".tar.gz")
    place = os.path.join(folder, name)
    path = f"{place}.tar.gz" if untar else place
    if not _is_there(path, file_hash, hash_algorithm):
        _fetch(origin, path)
        if (
            file_hash is not None
            and _hash(path, hash_algorithm, file_hash) != file_hash
        ):
            raise ValueError(
                f"Incomplete or corrupted file detected. The {hash_algorithm} file hash "
                f"does not match the provided value of {file_hash}."
            )
    if untar and not os.path.exists(place):
        _unpack(path, folder, "tar")
    elif extract and not untar:
        _unpack(path, folder, archive_format)
    return place


def _folder(cache_dir, cache_subdir):
    base = cache_dir or os.environ.get("KERAS_HOME") or os.path.join("~", ".keras")
    base = os.path.expanduser(base)
    try:
        os.makedirs(base, exist_ok=True)
    except OSError:
        pass  # another folder then
    if not os.access(base, os.W_OK):
        base = os.path.join("/tmp", ".keras")
    folder = os.path.join(base, cache_subdir)
    os.makedirs(folder, exist_ok=True)
    return folder


def _name_of(origin):
    name = os.path.basename(urllib.parse.urlsplit(origin).path)
    if not name:
        raise ValueError(
            f"Can't parse the file name from the origin provided: '{origin}'."
            "Please specify the `fname` as the input param."
        )
    return name


def _is_there(path, wanted, algorithm):
    if not os.path.exists(path):
        return False
    if wanted is None or _hash(path, algorithm, wanted) == wanted:
        return True
    print(
        "A local file was found, but it seems to be incomplete or outdated because the "
        f"{algorithm} file hash does not match the original value of {wanted} so we will "
        "re-download the data."
    )
    return False


def _fetch(origin, path):
    """Writes what a URL gives to a path, whole or not at all."""
    print(f"Downloading data from {origin}")
    try:
        with (
            urllib.request.urlopen(origin) as source,
            tempfile.NamedTemporaryFile(
                dir=os.path.dirname(path), delete=False
            ) as file,
        ):
            try:
                shutil.copyfileobj(source, file)
            except BaseException:
                os.unlink(file.name)
                raise
    except urllib.error.HTTPError as e:
        raise Exception(f"URL fetch failure on {origin}: {e.code} -- {e.msg}") from e
    except urllib.error.URLError as e:
        raise Exception(
            f"URL fetch failure on {origin}: {e.errno} -- {e.reason}"
        ) from e
    os.chmod(file.name, 0o644)
    os.replace(file.name, path)


def _unpack(path, folder, formats):
    """Unpacks an archive; what is none stays as it is."""
    if formats is None:
        return
    formats = {"auto": ("tar", "zip")}.get(formats, formats)
    formats = (formats,) if isinstance(formats, str) else tuple(formats)
    if "tar" in formats and tarfile.is_tarfile(path):
        with tarfile.open(path) as archive:
            _extract(archive, folder)
    elif "zip" in formats and zipfile.is_zipfile(path):
        shutil.unpack_archive(path, folder, "zip")


def _extract(archive, folder):
    """Files and folders of a tar archive; ValueError for what lies outside the folder and
    for links, tarfile's own errors where Python has the filter for them."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
        return
    root = os.path.realpath(folder)
    for member in archive.getmembers():
        place = os.path.realpath(os.path.join(root, member.name))
        inside = os.path.commonpath([root, place]) == root
        if not inside or not (member.isfile() or member.isdir()):
            raise ValueError(f"The archive's {member.name!r} is no file below {root}")
    archive.extractall(folder)


def _hash(path, algorithm, wanted):
    if algorithm == "auto":
        algorithm = "sha256" if len(wanted) == 64 else "md5"
    with open(path, "rb") as f:
        return hashlib.file_digest(f, algorithm).hexdigest()
