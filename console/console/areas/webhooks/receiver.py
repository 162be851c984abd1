"""What a receiver runs to verify a delivery, for the pages that show a secret. Tests run the Python one."""

PYTHON = '''\
import hashlib, hmac, os, time

SECRET = os.environ["MAKEREADY_WEBHOOK_SECRET"].encode()

def is_genuine(header: str, body: bytes) -> bool:
    """header: the value of Service-Signature; body: the raw bytes of the request."""
    parts = dict(part.strip().split("=", 1) for part in header.split(",") if "=" in part)
    at, digest = parts.get("t", ""), parts.get("v1", "")
    if not (at.isascii() and at.isdigit()) or abs(time.time() - int(at)) > 300:
        return False
    right = hmac.new(SECRET, at.encode() + b"." + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(right.encode(), digest.encode())
'''
NODE = """\
const { createHmac, timingSafeEqual } = require("node:crypto");

const secret = process.env.MAKEREADY_WEBHOOK_SECRET;

// header: the value of Service-Signature; body: the raw bytes of the request, a Buffer.
function isGenuine(header, body) {
  const [, at, digest] = /^t=(\\d{1,12}),v1=([0-9a-f]{64})$/.exec(header) || [];
  if (!at || Math.abs(Date.now() / 1000 - Number(at)) > 300) return false;
  const right = createHmac("sha256", secret).update(at + ".").update(body).digest("hex");
  return timingSafeEqual(Buffer.from(right), Buffer.from(digest));
}
"""
SNIPPETS = (("Python", PYTHON), ("Node.js", NODE))
