"""Exact counts in o200k_base and cl100k_base by tiktoken, without its downloads.

tiktoken downloads its rank files on first use, and deletes a cached one whose checksum is wrong. Here the files are
searched in tiktoken's caches and in one of our own, checked, and passed to tiktoken; nothing here uses the network.
A file with a wrong checksum is skipped and stays.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, NamedTuple

from aether.errors import BackendUnavailable, require_one_of

if TYPE_CHECKING:
    import tiktoken


class RankFile(NamedTuple):
    """The source of a vocabulary, and its checksum."""

    url: str
    sha256: str

    @property
    def file_name(self) -> str:
        """Return the name under which tiktoken caches the file."""
        return hashlib.sha1(self.url.encode(), usedforsecurity=False).hexdigest()


RANK_FILES = {
    "o200k_base": RankFile(
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": RankFile(
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}


def exact(name: str, text: str) -> int:
    """Return the number of tokens of `text` in the vocabulary `name`; lone surrogates count as U+FFFD.

    Raises:
        InvalidInput: there is no such vocabulary.
        BackendUnavailable: the rank file is not on this machine.
    """
    return len(_encoding(name).encode_ordinary(text))


def cache_directory() -> Path:
    """Return the directory in which fetched rank files are kept for this user.

    Raises:
        BackendUnavailable: the user has no home directory.
    """
    cache = os.environ.get("XDG_CACHE_HOME", "")
    try:
        root = Path(cache) if cache else Path.home() / ".cache"
    except RuntimeError as error:
        raise BackendUnavailable(
            "there is no home directory to keep rank files in.", fix="Set XDG_CACHE_HOME."
        ) from error
    return root / "aether" / "tokens"


def known(name: str) -> RankFile:
    """Return the rank file of a vocabulary.

    Raises:
        InvalidInput: there is no such vocabulary.
    """
    require_one_of(name, RANK_FILES, "a vocabulary")
    return RANK_FILES[name]


def _rank_file(rank_file: RankFile) -> bytes | None:
    """Return the content of the rank file, if one in tiktoken's caches or aether's own is intact."""
    import tempfile

    # The first two are tiktoken's own variables; to tiktoken, an empty one means: no cache.
    caches = [os.environ.get("TIKTOKEN_CACHE_DIR", ""), os.environ.get("DATA_GYM_CACHE_DIR", "")]
    directories = [Path(name) for name in caches if name]
    directories.append(Path(tempfile.gettempdir()) / "data-gym-cache")
    with contextlib.suppress(BackendUnavailable):
        directories.append(cache_directory())
    return next(filter(None, (intact(path / rank_file.file_name, rank_file) for path in directories)), None)


def intact(path: Path, rank_file: RankFile) -> bytes | None:
    """Return the content of the file at `path` if it has the checksum; None for any other."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    return content if hashlib.sha256(content).hexdigest() == rank_file.sha256 else None


@lru_cache(maxsize=len(RANK_FILES))
def _encoding(name: str) -> tiktoken.Encoding:
    content = _rank_file(known(name))
    if content is None:
        raise BackendUnavailable(
            f"the rank file of {name} is not on this machine.",
            fix=f'Fetch it with "aether tokens fetch {name}", or count with "estimate".',
        )
    try:
        import base64

        import tiktoken

        openai_public = importlib.import_module("tiktoken_ext.openai_public")
    except ImportError as error:
        raise BackendUnavailable(
            "the package tiktoken is missing.", fix='Install it, or count with "estimate".'
        ) from error
    lines = (line.split() for line in content.splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}

    def from_file(*_: object, **__: object) -> dict[bytes, int]:
        return ranks

    # tiktoken keeps the pattern of a vocabulary inside the function that also downloads. Run with
    # another loader among its globals, it only describes; the module itself is not touched.
    describe: FunctionType = getattr(openai_public, name)
    quiet = FunctionType(describe.__code__, {**vars(openai_public), "load_tiktoken_bpe": from_file})
    return tiktoken.Encoding(**quiet())
