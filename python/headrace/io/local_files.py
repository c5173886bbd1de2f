"""Files of this machine, for gfile; their errors are the system's."""

import errno
import os
from glob import glob  # noqa: F401
from os import listdir, mkdir, remove, replace, walk  # noqa: F401
from os.path import exists, isdir  # noqa: F401
from shutil import copyfile, rmtree  # noqa: F401


def makedirs(path):
    """Makes a folder and those above it."""
    try:
        os.stat(path)
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise
    missing = []  # the deepest first; as many as the path has names
    while path and not os.path.isdir(path):
        missing.append(path)
        path = os.path.dirname(path.rstrip("/"))
    for folder in reversed(missing):
        try:
            os.mkdir(folder)
        except FileExistsError:
            if not os.path.isdir(folder):
                raise NotADirectoryError(errno.ENOTDIR, "") from None


def stat(path):
    """(length, mtime_nsec, is_directory)"""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, os.path.isdir(path)
