"""Runs the operator's command line many times in one process: each start of it would cost 0.6 s.

Reads requests `{"words": […], "input": text}`, one a line, and answers each with one line `{"status", "out", "err"}`:
the exit status of `makeready --json WORDS…` and its output, with `input` on its standard input.
"""

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout

from makeready_cli import program
from makeready_cli.parsers import Parser


def answer(tree: Parser, words: list[str], standard_input: str) -> dict[str, object]:
    """Runs one command."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    sys.stdin = io.StringIO(standard_input)
    with redirect_stdout(out), redirect_stderr(err):
        try:
            status = program.main(["--json", *words], tree)
        except SystemExit as ended:  # argparse refuses arguments this way
            status = ended.code if isinstance(ended.code, int) else 1
    printed = [stream.buffer.getvalue().decode() for stream in (out, err)]
    return {"status": status, "out": printed[0], "err": printed[1]}


def main() -> None:
    """Answers until the input ends."""
    requests, answers = sys.stdin, sys.stdout
    tree = program.parser()
    for line in requests:
        request = json.loads(line)
        answers.write(json.dumps(answer(tree, request["words"], request["input"])) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
