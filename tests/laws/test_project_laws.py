"""Project laws: over any tree of repositories and homes, a session knows one project's memory and no other's."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from aether import project
from tests.effort import examples

DIRECTORIES = st.lists(st.sampled_from("ab"), max_size=4).map("/".join)
PLACES = st.sets(DIRECTORIES, max_size=5)


@examples(150)
@given(repositories=PLACES, homes=PLACES, links=PLACES, started=DIRECTORIES, cwd=DIRECTORIES)
def test_a_session_has_the_home_of_the_project_in_which_it_was_started(
    repositories, homes, links, started, cwd
):
    with tempfile.TemporaryDirectory() as directory:
        top, elsewhere = (
            Path(directory).resolve() / "top",
            Path(directory).resolve() / "elsewhere" / ".aether",
        )
        elsewhere.mkdir(parents=True)
        for place in (started, cwd):
            (top / place).mkdir(parents=True, exist_ok=True)
        for place in repositories:
            (top / place / ".git").mkdir(parents=True, exist_ok=True)
        for place in homes:
            (top / place / ".aether").mkdir(parents=True, exist_ok=True)
        for place in links - homes:
            (top / place).mkdir(parents=True, exist_ok=True)
            (top / place / ".aether").symlink_to(elsewhere)

        with mock.patch.dict(os.environ, {"HOME": str(Path(directory) / "user")}):
            os.environ.pop("AETHER_HOME", None)
            root = project.root_of(str(top / cwd), str(top / started))
            home = project.home_of(str(top / cwd), str(top / started))
            of_home = project.root_of(str(Path(home).parent)) if home else ""

        around = [place for place in repositories if home.startswith(f"{top / place}/")]
        assert home != str(elsewhere)
        if home and any(root == str(top / place) for place in repositories):
            assert of_home == root  # never that of a repository below, beside or above
        else:
            assert around == []
