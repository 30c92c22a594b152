"""Which paths and URIs mean a file of this machine, and that no other becomes a local directory."""

from pathlib import Path

import pytest

from quorate.pipeline.errors import BadSetting
from quorate.pipeline.files.inputs import find_inputs
from quorate.pipeline.files.uris import local_path
from quorate.pipeline.tables.result_directory import ResultDirectory


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("var/log", "var/log"),
        ("/var/log", "/var/log"),
        ("file:/var/log", "/var/log"),
        ("file:///var/a%20log", "/var/a log"),
        ("file://localhost/var/log", "/var/log"),
        ("./s3a:/bucket", "./s3a:/bucket"),
        ("a:b", "a:b"),
    ],
)
def test_paths_and_file_uris_mean_local_files(text: str, path: str) -> None:
    assert local_path(text) == path


@pytest.mark.parametrize(
    "text", ["s3a://bucket/log", "hdfs://name:8020/log", "dbfs:/log", "GS://b/c", "s3a:/bucket/log"]
)
def test_other_schemes_are_refused(text: str) -> None:
    with pytest.raises(BadSetting, match=f"^{text}: a URI of scheme {text.partition(':')[0]}, and only paths of the"):
        local_path(text)


def test_other_hosts_are_refused() -> None:
    with pytest.raises(BadSetting, match="names the host elsewhere"):
        local_path("file://elsewhere/log")


def test_nothing_is_read_from_or_written_to_a_directory_named_like_a_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where ``pathlib`` has taken a slash away."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(BadSetting, match=r"^dbfs://bucket/log: is neither a path nor a URI that can be read"):
        find_inputs(["dbfs://bucket/log"])
    with (
        pytest.raises(BadSetting, match=r"^s3a:/bucket/out: is neither a path nor a URI"),
        ResultDirectory(Path("s3a://bucket/out")),
    ):
        pass
    assert not list(tmp_path.iterdir())
