"""A server that speaks as much S3 as Arrow's client asks for: objects in memory, on a port of loopback."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
_TIME = "2026-01-01T00:00:00.000Z"


class ObjectStore(ThreadingHTTPServer):
    """What is in it, by bucket and key as one name."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}

    @property
    def variables(self) -> dict[str, str]:
        """Of the environment of whoever is to use it."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server_address[1]}",
            "AWS_ACCESS_KEY_ID": "somebody",
            "AWS_SECRET_ACCESS_KEY": "something",
            "AWS_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
        }


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A store that is served while the block runs."""
    with ObjectStore() as store:
        thread = threading.Thread(target=store.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    server: ObjectStore
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nobody reads it."""

    def do_HEAD(self) -> None:
        name, _ = self._asked()
        data = self.server.objects.get(name)
        if data is None and "/" in name:
            return self._answer(404)
        return self._answer(200, length=len(data or b""))

    def do_GET(self) -> None:
        name, query = self._asked()
        if "list-type" in query:
            return self._answer(200, self._listing(name, query.get("prefix", ""), query.get("delimiter")))
        data = self.server.objects.get(name)
        if data is None:
            return self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
        first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
        end = min(int(last) + 1 if last else len(data), len(data))
        return self._answer(206, data[int(first) : end], {"Content-Range": f"bytes {first}-{end - 1}/{len(data)}"})

    def do_PUT(self) -> None:
        name, query = self._asked()
        data = self._body()
        if "partNumber" in query:
            self.server.parts[query["uploadId"]][int(query["partNumber"])] = data
        elif "/" in name:
            self.server.objects[name] = data
        self._answer(200, headers={"ETag": '"1"'})

    def do_POST(self) -> None:
        name, query = self._asked()
        body = self._body().decode()
        if "uploads" in query:
            upload = f"upload-{len(self.server.parts)}"
            self.server.parts[upload] = {}
            self._answer(200, _xml("InitiateMultipartUploadResult", f"<UploadId>{upload}</UploadId>"))
        elif "uploadId" in query:
            parts = self.server.parts[query["uploadId"]]
            self.server.objects[name] = b"".join(parts[number] for number in sorted(parts))
            self._answer(200, _xml("CompleteMultipartUploadResult", '<ETag>"1"</ETag>'))
        else:
            for part in body.split("<Key>")[1:]:
                self.server.objects.pop(f"{name}/{part.partition('</Key>')[0]}", None)
            self._answer(200, _xml("DeleteResult", ""))

    def do_DELETE(self) -> None:
        name, query = self._asked()
        if "uploadId" not in query:
            self.server.objects.pop(name, None)
        self._answer(204)

    def _asked(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        return f"{bucket}/{key}" if key else bucket, {name: values[0] for name, values in query.items()}

    def _body(self) -> bytes:
        """Also in the chunks that Amazon's clients sign or check one by one."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            data = _unchunked(self.rfile)
        else:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        return _unchunked(BytesIO(data)) if "aws-chunked" in self.headers.get("Content-Encoding", "") else data

    def _listing(self, bucket: str, prefix: str, delimiter: str | None) -> bytes:
        found, directories = "", set()
        for name in sorted(self.server.objects):
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix):
                continue
            rest = key.removeprefix(prefix)
            if delimiter and delimiter in rest:
                directories.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            size = len(self.server.objects[name])
            found += (
                f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size><LastModified>{_TIME}</LastModified></Contents>"
            )
        found += "".join(f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in directories)
        count = found.count("<Contents>") + len(directories)
        return _xml("ListBucketResult", f"<KeyCount>{count}</KeyCount><IsTruncated>false</IsTruncated>{found}")

    def _answer(
        self, code: int, body: bytes = b"", headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        self.send_response(code)
        for name, value in {"Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)


def _unchunked(stream: Any) -> bytes:
    """Chunks with their sizes as hexadecimal lines, up to the empty one and the trailers behind it."""
    body = b""
    while size := int(stream.readline().partition(b";")[0], 16):
        body += stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass
    return body


def _xml(name: str, inner: str) -> bytes:
    return f'<?xml version="1.0" encoding="UTF-8"?><{name} {_NAMESPACE}>{inner}</{name}>'.encode()
