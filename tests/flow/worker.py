"""The worker of the contract suite in Python, of its standard library alone.

What it does is said in lib/flow/http/worker_contract.ts; the protocol is docs/flow-workers.md.
"""

import json
import os
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid

URL = os.environ["MAILER_URL"]
TOKEN = os.environ.get("MAILER_TOKEN")
LEASE_MS = int(os.environ.get("MAILER_LEASE_MS", "30000"))
NAME = f"python-{uuid.uuid4()}"
THREADS = 4


class Interrupt(Exception):
    """The task waits for a person."""

    def __init__(self, payload):
        super().__init__("interrupted")
        self.payload = payload


class Permanent(Exception):
    """Not to be tried again."""


class Result:
    """More than an output."""

    def __init__(self, **fields):
        self.fields = fields


def post(path, body):
    headers = {"content-type": "application/json"}
    if TOKEN:
        headers["authorization"] = f"Bearer {TOKEN}"
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers, method="POST")
    with urllib.request.urlopen(request, timeout=90) as response:
        return json.loads(response.read())


def about(job, action, body):
    return post(f"/v1/jobs/{urllib.parse.quote(job['id'], safe='')}/{action}", {"lease": job["lease"], **body})


def keep(job, over, cancelled):
    """Prolongs the lease; each call is answered after a third of it, or at once when the job is not wanted any more."""
    while not over.is_set():
        begun = time.monotonic()
        try:
            if not about(job, "heartbeat", {"keep": True, "waitMs": min(job["lease_ms"] // 3, 60_000)})["wanted"]:
                cancelled.set()
                return
        except OSError:
            pass  # it is tried again, as is a call that was answered early
        if time.monotonic() - begun < job["lease_ms"] / 6000:
            over.wait(job["lease_ms"] / 6000)


def hand_in(job, action, answer, cancelled):
    while not cancelled.is_set():
        try:
            about(job, action, answer)
            return
        except urllib.error.HTTPError as error:
            if error.code in (400, 413):
                if action != "fail":
                    hand_in(job, "fail", {"error": str(error), "retryable": False}, cancelled)
                return
            time.sleep(0.5)
        except OSError:
            time.sleep(0.5)


def work(job):
    over, cancelled = threading.Event(), threading.Event()
    keeper = threading.Thread(target=keep, args=(job, over, cancelled), daemon=True)
    keeper.start()
    try:
        result = HANDLERS[job["kind"]](job, cancelled)
        if isinstance(result, Result):
            action, answer = "complete", result.fields
        else:
            action, answer = "complete", {"output": result}
    except Interrupt as asked:
        action, answer = "interrupt", {"payload": asked.payload}
    except Permanent as error:
        action, answer = "fail", {"error": str(error), "retryable": False}
    except Exception as error:  # whatever the code of a task does, the worker goes on
        action, answer = "fail", {"error": str(error), "name": type(error).__name__}
    finally:
        over.set()
    hand_in(job, action, answer, cancelled)


def output(job, _):
    given = job["context"]["input"]
    return {"sum": given["a"] + given["b"], "big": given["big"]}


def writes(_job, _):
    return Result(output={"ok": True}, writes={"log": ["w"]}, next="chosen", usage={"tokens": 7})


def retry(job, _):
    if job["attempt"] < 3:
        raise ValueError("not yet")
    return {"attempt": job["attempt"]}


def permanent(_job, _):
    raise Permanent("no")


def crash(job, _):
    if job["attempt"] == 1:
        return {"crash": 1 // 0}
    return {"attempt": job["attempt"]}


def interrupt(job, _):
    context = job["context"]
    if "resume" not in context:
        raise Interrupt({"ask": "ok?"})
    return {"answer": context["resume"], "asked": context["interrupt"]["ask"]}


def item(job, _):
    context = job["context"]
    return {"square": context["item"] * context["item"], "index": context["index"]}


def large(job, _):
    return {"text": job["context"]["input"]["text"]}


def slow(job, cancelled):
    cancelled.wait(job["context"]["input"]["ms"] / 1000)
    return {"attempt": job["attempt"], "deliveries": job["deliveries"]}


HANDLERS = {
    "contract-output": output,
    "contract-writes": writes,
    "contract-retry": retry,
    "contract-permanent": permanent,
    "contract-crash": crash,
    "contract-interrupt": interrupt,
    "contract-item": item,
    "contract-large": large,
    "contract-slow": slow,
}


def serve():
    while True:
        try:
            asked = {"kinds": list(HANDLERS), "max": 1, "worker": NAME, "leaseMs": LEASE_MS, "waitMs": 20_000}
            jobs = post("/v1/jobs/lease", asked)["jobs"]
        except OSError:
            time.sleep(0.5)
            continue
        for job in jobs:
            work(job)


for _ in range(THREADS - 1):
    threading.Thread(target=serve, daemon=True).start()
serve()
