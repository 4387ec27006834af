"""A small web server with the faults that downloads meet."""

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site:
    """Files by path, and how the server misbehaves.

    Attributes
    ----------
    files : dict of path -> bytes
    tag : ETag of all files, or None for none
    cut : bytes after which an answer breaks off, one entry an answer; None leaves it whole
    fail : statuses to answer with instead, one a request
    ranges : whether Range is understood
    requests : (path, Range header or None) of each request
    """

    def __init__(self):
        self.files, self.tag, self.cut, self.fail, self.ranges, self.requests = {}, '"v1"', [], [], True, []
        self.url = ""


@contextmanager
def serve():
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            wanted = self.headers.get("Range")
            site.requests.append((self.path, wanted))
            body = site.files.get(self.path)
            status = site.fail.pop(0) if site.fail else 200 if body is not None else 404
            if status >= 400:
                self.send_error(status)
                return
            start, total = 0, len(body)
            if wanted and site.ranges and self.headers.get("If-Range") in (None, site.tag):
                start = int(wanted.removeprefix("bytes=").removesuffix("-"))
                if start >= total:
                    self.send_error(416)
                    return
                status = 206
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
            if site.tag:
                self.send_header("ETag", site.tag)
            self.send_header("Content-Length", str(total - start))
            self.end_headers()
            cut = site.cut.pop(0) if site.cut else None
            self.wfile.write(body[start : total if cut is None else start + cut])

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    site.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
