import pytest

from tests.architects import fakes


@pytest.fixture(autouse=True)
def _no_credentials(monkeypatch, tmp_path):
    fakes.without_credentials(monkeypatch, tmp_path)
