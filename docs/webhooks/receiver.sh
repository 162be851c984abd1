#!/bin/sh
# A receiver of webhook deliveries in POSIX shell; it needs openssl and the usual small programs.
#
#     WEBHOOK_SECRET=whsec_… receiver.sh INBOX                    one request on stdin, its response on stdout
#     WEBHOOK_SECRET=whsec_… receiver.sh verify HEADER [NOW]      a body on stdin; exits with 0 where it is genuine
#
# The first form is for whatever ends TLS and starts a program for each connection (socat, stunnel, inetd), under
# `timeout 15`. A delivery that is verified becomes the file INBOX/EVENT_ID.json, and then is answered; one that comes
# again finds its file there.
set -u
LC_ALL=C
export LC_ALL
umask 077
TOLERANCE_SECONDS=300
BODY_BYTES_MAX=1048576

sha256() { openssl dgst -sha256 -binary; }
hex() { od -An -v -tx1 | tr -d ' \n'; }

# hmac KEY: HMAC-SHA256 of stdin, in hex. `openssl dgst -hmac KEY` would be shorter, and show the key to whoever runs ps.
hmac() {
  inner='' outer='' count=0
  for byte in $(printf %s "$1" | od -An -v -tu1); do
    i=$((byte ^ 54)) o=$((byte ^ 92)) count=$((count + 1))
    inner="$inner\\$((i / 64))$((i / 8 % 8))$((i % 8))"
    outer="$outer\\$((o / 64))$((o / 8 % 8))$((o % 8))"
  done
  [ "$count" -le 64 ] || return 1 # a longer key is hashed first; no signing secret is that long
  while [ "$count" -lt 64 ]; do
    inner="$inner\\066" outer="$outer\\134" count=$((count + 1))
  done
  # shellcheck disable=SC2059
  { printf "$outer"; { printf "$inner"; cat; } | sha256; } | sha256 | hex
}

# is_genuine HEADER BODY_FILE NOW: whether HEADER, the value of Service-Signature, was made of the file just now.
is_genuine() {
  [ "${#1}" -le 1000 ] || return 1
  timestamp='' digests='' times=0
  set -f
  for part in $(printf %s "$1" | tr ', ' '\n\n'); do
    case $part in
      t=*) timestamp=${part#t=} times=$((times + 1)) ;;
      v1=*) digests="$digests ${part#v1=}" ;;
    esac
  done
  [ "$times" -eq 1 ] || return 1
  case $timestamp in '' | *[!0-9]* | ?????????????*) return 1 ;; esac
  age=$(($3 - $(expr "$timestamp" + 0))) # expr: a leading 0 would make the shell read it as octal
  [ "$age" -le "$TOLERANCE_SECONDS" ] && [ "$age" -ge "-$TOLERANCE_SECONDS" ] || return 1
  right=$({ printf '%s.' "$timestamp" && cat "$2"; } | hmac "$WEBHOOK_SECRET") || return 1
  # The shell does not compare in constant time. What it compares are digests under a key made for this one comparison:
  # how long that takes tells nothing about the right one.
  once=$(openssl rand -hex 16) || return 1
  expected=$(printf %s "$right" | hmac "$once")
  [ "${#right}" -eq 64 ] && [ "${#expected}" -eq 64 ] || return 1 # openssl failed: two empty texts would be equal
  for digest in $digests; do
    [ "${#digest}" -eq 64 ] || continue
    [ "$(printf %s "$digest" | hmac "$once")" = "$expected" ] && return 0
  done
  return 1
}

answer() {
  printf 'HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n' "$1"
  exit 0
}

receive() {
  length='' header='' lines=0
  IFS=' ' read -r method _ || exit 0
  while IFS= read -r line; do
    line=${line%"$(printf '\r')"}
    [ -n "$line" ] || break
    lines=$((lines + 1))
    [ "$lines" -le 100 ] && [ "${#line}" -le 8192 ] || answer '431 Request Header Fields Too Large'
    value=${line#*:}
    case $(printf %s "${line%%:*}" | tr '[:upper:]' '[:lower:]') in
      content-length) length=${value# } ;;
      service-signature) header="$header,$value" ;;
    esac
  done
  [ "$method" = POST ] || answer '405 Method Not Allowed'
  case $length in '' | *[!0-9]* | ??????????*) answer '411 Length Required' ;; esac
  [ "$length" -le "$BODY_BYTES_MAX" ] || answer '413 Content Too Large'
  head -c "$length" >"$body" # to a file: a variable loses NUL and the newlines at the end
  [ "$(wc -c <"$body")" -eq "$length" ] || answer '400 Bad Request'
  is_genuine "$header" "$body" "$(date +%s)" || answer '401 Unauthorized'
  # The keys of the envelope come in their order, so the second one can be read without a JSON parser.
  event_id=$(sed -n '1s/^{"schema_version":[0-9]*,"event_id":"\([0-9A-Za-z-]*\)".*/\1/p' "$body")
  [ -n "$event_id" ] || answer '500 Internal Server Error'
  sync "$body"
  # ln makes the file whole or not at all, and fails where it is there already: a duplicate.
  ln "$body" "$inbox/$event_id.json" 2>/dev/null || [ -f "$inbox/$event_id.json" ] ||
    answer '500 Internal Server Error' # it comes again
  sync "$inbox"
  answer '200 OK' # whoever does the work looks into the inbox
}

: "${WEBHOOK_SECRET:?is not set}" "${1:?the inbox, or verify}"
inbox=$1
[ "$1" != verify ] || inbox=${TMPDIR:-/tmp}
body=$(mktemp "$inbox/.body.XXXXXX") || exit 1
trap 'rm -f "$body"' EXIT
trap 'exit 1' HUP INT PIPE TERM
if [ "$1" = verify ]; then
  cat >"$body"
  is_genuine "${2?the header}" "$body" "${3:-$(date +%s)}"
else
  receive
fi
